package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/rig"
)

// env is what a workload gets: where the cluster is, how long to run, and where figures go.
type env struct {
	broker  *rig.Process // nil when measuring a cluster by address
	seeds   []string
	dir     string                                  // for files of the workload's own
	fresh   func(name string) (*rig.Process, error) // makes another broker of ours; nil where there is none to make
	seconds time.Duration                           // length of each timed workload
	sheet   *figures.Sheet
}

func (e *env) put(name string, v float64) { e.sheet.Values[name] = v }

// cpu is the processor time that the broker has used so far; 0 for a cluster by address.
func (e *env) cpu() time.Duration {
	if e.broker == nil {
		return 0
	}
	return e.broker.CPU()
}

// putPer notes the broker's microseconds per operation; nothing for a cluster by address.
func (e *env) putPer(name string, used time.Duration, operations float64) {
	if e.broker == nil || operations == 0 {
		return
	}
	e.put(name, float64(used.Nanoseconds())/operations/1000)
}

func (e *env) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(e.seeds...)}, opts...)...)
}

func (e *env) admin(ctx context.Context, f func(context.Context, *kadm.Client) error) error {
	cl, err := e.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	return f(ctx, kadm.NewClient(cl))
}

// durable makes Kafka write each append to the disk before it answers; our broker does that anyway.
var durable = map[string]*string{"flush.messages": kadm.StringPtr("1")}

// relaxed makes our broker answer from the page cache, as Kafka does as shipped.
var relaxed = map[string]*string{"millrace.durability": kadm.StringPtr("os")}

// topic creates a fresh topic and returns its name when all its partitions can be written.
func (e *env) topic(ctx context.Context, what string, partitions int32, config map[string]*string) (string, error) {
	name := fmt.Sprintf("bench-%s-%d", what, time.Now().UnixNano())
	err := e.admin(ctx, func(ctx context.Context, adm *kadm.Client) error {
		if _, err := adm.CreateTopic(ctx, partitions, 1, config, name); err != nil {
			return err
		}
		return led(ctx, adm, 1, name)
	})
	return name, err
}

// relaxedTopic creates a topic that is not synced before the broker answers, and says how a producer has to ask for
// acknowledgements there: with acks=all, which Kafka as shipped does not sync; a server of ours that knows no such topic
// is asked with acks=1.
func (e *env) relaxedTopic(ctx context.Context, what string) (topic string, acks kgo.Acks, how string, err error) {
	if e.broker == nil || e.broker.Name != rig.MillraceName {
		topic, err = e.topic(ctx, what, 1, nil)
		return topic, kgo.AllISRAcks(), "acks=all, as shipped", err
	}
	topic, err = e.topic(ctx, what, 1, relaxed)
	if errors.Is(err, kerr.InvalidConfig) {
		topic, err = e.topic(ctx, what, 1, nil)
		return topic, kgo.LeaderAck(), "acks=1, as this server has no millrace.durability", err
	}
	return topic, kgo.AllISRAcks(), "acks=all, millrace.durability=os", err
}

// led waits until all partitions of the topics have a leader; no name means all topics, which must be that many at least.
func led(ctx context.Context, adm *kadm.Client, least int, topics ...string) error {
	for {
		m, err := adm.Metadata(ctx, topics...)
		if err != nil {
			return err
		}
		ready := len(m.Topics) >= least
		m.Topics.EachPartition(func(p kadm.PartitionDetail) { ready = ready && p.Err == nil && p.Leader >= 0 })
		m.Topics.EachError(func(kadm.TopicDetail) { ready = false })
		if ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}
