package conntest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/runner"
)

// world is a case's part of the cluster: a topic, and what was written to it.
type world struct {
	*env
	id     string // random, so that runs on a lasting cluster do not meet
	topic  string
	client *kgo.Client
	admin  *kadm.Client
	next   int   // number of the next record
	want   []Row // committed records that belong into the store, in the order of the log
	reject []Ref // records that belong among the rejects
}

const partitions = 2

// newWorld creates the topic.
func newWorld(e *env) (*world, error) {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	w := &world{env: e, id: e.name + "-" + hex.EncodeToString(b[:])}
	w.topic = "conntest-" + w.id
	var err error
	w.client, err = kgo.NewClient(kgo.SeedBrokers(e.kit.Cluster.Seeds()...), kgo.Dialer(e.kit.Cluster.Dial),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return nil, err
	}
	e.closers = append(e.closers, w.client.Close)
	w.admin = kadm.NewClient(w.client)
	return w, w.createTopic()
}

// createTopic waits until the topic is there; a deletion may still be under way.
func (w *world) createTopic() error {
	for {
		_, err := w.admin.CreateTopic(w.ctx, partitions, -1, nil, w.topic)
		if err == nil || w.ctx.Err() != nil {
			return err
		}
		if !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create topic %s: %w", w.topic, err)
		}
	}
}

// recreateTopic deletes the topic and makes another of the same name.
func (w *world) recreateTopic() error {
	if _, err := w.admin.DeleteTopic(w.ctx, w.topic); err != nil {
		return fmt.Errorf("delete topic %s: %w", w.topic, err)
	}
	w.client.PurgeTopicsFromClient(w.topic)
	return w.createTopic()
}

// produce writes n good records outside a transaction.
func (w *world) produce(n int) error { return w.produceBy(w.client, n, true) }

func (w *world) produceBy(cl *kgo.Client, n int, count bool) error {
	rs := make([]*kgo.Record, n)
	for i := range rs {
		id, key := fmt.Sprintf("r%d", w.next), fmt.Sprintf("k%d", w.next%7)
		rs[i] = w.record(key, fmt.Sprintf(`{"id":%q,"key":%q,"n":%d}`, id, key, w.next))
		w.next++
		if count {
			w.want = append(w.want, Row{ID: id, Key: key})
		}
	}
	if err := cl.ProduceSync(w.ctx, rs...).FirstErr(); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	return nil
}

// record makes a record of the year 2001, as data often is old.
func (w *world) record(key, value string) *kgo.Record {
	return &kgo.Record{
		Topic: w.topic, Key: []byte(key), Value: []byte(value),
		Timestamp: time.Date(2001, 1, 1, 0, 0, w.next, 0, time.UTC),
	}
}

// produceBad writes one record that cannot be stored.
func (w *world) produceBad(value string) error {
	r := w.record("bad", value)
	if err := w.client.ProduceSync(w.ctx, r).FirstErr(); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	w.reject = append(w.reject, Ref{w.topic, r.Partition, r.Offset})
	return nil
}

// transaction writes n records in a transaction of their own.
func (w *world) transaction(n int, commit bool) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.kit.Cluster.Seeds()...), kgo.Dialer(w.kit.Cluster.Dial),
		kgo.TransactionalID("conntest-"+w.id), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	if err := w.produceBy(cl, n, commit); err != nil {
		return err
	}
	return cl.EndTransaction(w.ctx, kgo.TransactionEndTry(commit))
}

// process is one process that runs the connector.
type process struct {
	w    *world
	net  *network
	run  *runner.Sink
	stop context.CancelFunc
	done chan struct{} // closed when Run has returned
	err  error         // of Run, after done

	mu    sync.Mutex
	gates []*gate
}

// start runs the connector; setup is applied to the gate of each task.
func (w *world) start(setup func(p *process, g *gate), change ...func(*runner.SinkOptions)) (*process, error) {
	p := &process{w: w, net: newNetwork(w.kit.Cluster), done: make(chan struct{})}
	o := runner.SinkOptions{
		Cluster: p.net, Topics: []string{w.topic}, Key: connectors.String, Value: connectors.JSON,
		Group: "conntest-" + w.id, Instance: "conntest-" + w.id, AllowWeaker: true,
		MaxRecords: 20, Linger: 5 * time.Millisecond, RetryMin: 5 * time.Millisecond, RetryMax: 200 * time.Millisecond,
		CallTimeout: 2 * time.Second, StopTimeout: 3 * time.Second, MirrorEvery: 50 * time.Millisecond,
		New: func(int) (connectors.TxSink, error) {
			s, err := w.store.New()
			if err != nil {
				return nil, err
			}
			g := newGate(s)
			if setup != nil {
				setup(p, g)
			}
			p.mu.Lock()
			p.gates = append(p.gates, g)
			p.mu.Unlock()
			return g, nil
		},
	}
	for _, f := range change {
		f(&o)
	}
	var err error
	if p.run, err = runner.NewSink(o); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(w.ctx)
	p.stop = cancel
	go func() {
		defer close(p.done)
		p.err = p.run.Run(ctx)
	}()
	w.closers = append(w.closers, func() { cancel(); <-p.done })
	return p, nil
}

// await waits for a status.
func (p *process) await(what string, fits func(runner.Status) bool) error {
	if _, err := p.run.Await(p.w.ctx, fits); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// end waits for Run to return by itself.
func (p *process) end() error {
	select {
	case <-p.done:
		return p.err
	case <-p.w.ctx.Done():
		st := p.run.Status()
		return fmt.Errorf("%w: Run does not return: state %s %s", p.w.ctx.Err(), st.State, st.Err)
	}
}

// halt stops the connector cleanly.
func (p *process) halt() error {
	p.stop()
	if err := p.end(); err != nil {
		return fmt.Errorf("clean stop: %w", err)
	}
	return nil
}

// ends returns the ends of the topic's partitions.
func (w *world) ends() (map[connectors.TP]int64, error) {
	listed, err := w.admin.ListEndOffsets(w.ctx, w.topic)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("ends of topic %s: %w", w.topic, err)
	}
	out := map[connectors.TP]int64{}
	listed.Each(func(l kadm.ListedOffset) { out[connectors.TP{Topic: l.Topic, Partition: l.Partition}] = l.Offset })
	return out, nil
}

// caughtUp waits until every record that is in the log now is stored, by any of
// the processes given.
func (w *world) caughtUp(ps ...*process) error {
	ends, err := w.ends()
	if err != nil {
		return err
	}
	for tp, end := range ends {
		if err := w.reached(tp, end, ps); err != nil {
			return err
		}
	}
	return nil
}

// reached waits until one of the processes has stored a partition up to end.
func (w *world) reached(tp connectors.TP, end int64, ps []*process) error {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	found := make(chan error, len(ps))
	for _, p := range ps {
		go func() {
			_, err := p.run.Await(ctx, func(st runner.Status) bool {
				at, ok := st.Partition(tp)
				return ok && at.State == runner.Running && at.Position.Next >= end
			})
			found <- err
		}()
	}
	var err error
	for range ps {
		if err = <-found; err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s is not stored up to offset %d: %w", tp, end, err)
}

// exact compares the store with what was written.
func (w *world) exact() error {
	return errors.Join(w.holds(w.want), w.rejected(w.reject...))
}
