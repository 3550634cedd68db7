package workload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/txn/history"
)

// field is what all clients of a run share: where they work, the values that are not
// used yet, and the history.
type field struct {
	options Options
	rec     *recorder
	name    string
	topics  []string
	keys    []history.Key
	values  map[history.Key]*atomic.Int64 // the map is not changed any more
	groups  [groups]string
	admin   *kadm.Client
	wire    *wire // nil: nothing is cut
}

// patience is how long one operation may take before the client gives it up.
const patience = 30 * time.Second

// groups is how many groups members choose from. One rebalances eagerly, one
// cooperatively.
const groups = 2

// newField creates the topics.
func newField(ctx context.Context, o Options) (*field, error) {
	began := time.Now()
	f := &field{options: o, rec: &recorder{began: began}, values: map[history.Key]*atomic.Int64{}}
	f.wire = newWire(o)
	f.name = fmt.Sprintf("%s-%x-%s", o.Name, o.Seed, strconv.FormatInt(began.UnixNano(), 36))
	cl, err := kgo.NewClient(f.connect()...)
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	f.admin = kadm.NewClient(cl)
	for i := range o.Topics {
		topic := fmt.Sprintf("%s-t%d", f.name, i)
		f.topics = append(f.topics, topic)
		for p := range int32(o.Partitions) {
			k := history.Key{Topic: topic, Partition: p}
			f.keys = append(f.keys, k)
			f.values[k] = &atomic.Int64{}
		}
	}
	for i := range f.groups {
		f.groups[i] = fmt.Sprintf("%s-g%d", f.name, i)
	}
	for _, topic := range f.topics {
		err := insist(ctx, func() error {
			_, err := f.admin.CreateTopic(ctx, int32(o.Partitions), o.Replication, nil, topic)
			if errors.Is(err, kerr.TopicAlreadyExists) {
				return nil // an earlier try that was not answered
			}
			return err
		})
		if err != nil {
			f.admin.Close()
			return nil, fmt.Errorf("workload: create topic %s: %w", topic, err)
		}
	}
	return f, nil
}

// connect is how every client reaches the brokers.
func (f *field) connect() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.SeedBrokers(f.options.Seeds...), kgo.ClientID("millrace-verify"), kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(100 * time.Millisecond), kgo.DialTimeout(2 * time.Second),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Duration(tries)*20*time.Millisecond, 250*time.Millisecond)
		}),
	}
	switch {
	case f.wire != nil:
		opts = append(opts, kgo.Dialer(f.wire.Dial))
	case f.options.Dial != nil:
		opts = append(opts, kgo.Dialer(f.options.Dial))
	}
	return opts
}

// value takes one that was not sent to the partition before.
func (f *field) value(k history.Key) int64 { return f.values[k].Add(1) }

// close removes what newField and the groups' members made.
func (f *field) close(ctx context.Context) error {
	defer f.admin.Close()
	if f.options.Keep {
		return nil
	}
	err := insist(ctx, func() error {
		_, err := f.admin.DeleteTopics(ctx, f.topics...)
		return err
	})
	if err != nil {
		return fmt.Errorf("workload: delete topics: %w", err)
	}
	// A group that nobody joined does not exist, and one whose crashed members
	// have not expired can not be deleted; both are of no consequence.
	_, _ = f.admin.DeleteGroups(ctx, f.groups[:]...)
	return nil
}

// insist repeats what fails without an answer of a broker, which may be restarting,
// for a while.
func insist(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := f()
		var refused *kerr.Error
		if err == nil || ctx.Err() != nil || errors.As(err, &refused) && !refused.Retriable {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
