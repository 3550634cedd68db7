package streamstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
)

// TB is what a driver needs of testing.TB.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Option changes how a driver runs.
type Option func(*settings)

type settings struct {
	partitions int32
	topics     map[string]int32
	manual     bool
	start      time.Time
}

// Partitions gives every topic that the application does not create itself n
// partitions. The default is 1.
func Partitions(n int32) Option { return func(s *settings) { s.partitions = n } }

// TopicPartitions gives one topic n partitions.
func TopicPartitions(topic string, n int32) Option {
	return func(s *settings) { s.topics[topic] = n }
}

// ManualCommit leaves commits to Commit and Settle. Until then results, and
// records on their way through a repartition topic, are seen by nobody.
func ManualCommit() Option { return func(s *settings) { s.manual = true } }

// StartAt sets the wall clock at the start. The default is 2000-01-01, UTC.
func StartAt(t time.Time) Option { return func(s *settings) { s.start = t } }

// Raw is a record as its topic holds it.
type Raw struct {
	Topic      string
	Partition  int32
	Offset     int64
	Time       time.Time
	Key, Value []byte
	Headers    streams.Headers
}

// Driver runs one application. It is for one goroutine.
type Driver struct {
	t       TB
	app     *streams.App
	cluster *cluster
	workers []*worker
	globals []*global
	pending []task.Out      // output of the open transaction
	written []Raw           // committed, not yet given out by Written
	inner   map[string]bool // topics of the application's own
	given   []string        // topics whose number of partitions is an option
	manual  bool
	now     time.Time
	err     error                                // what stopped the application
	dropped map[dropKey]int64                    // by tasks that have ended
	crash   func(at string) (*streams.App, bool) // of EveryCrash: whether to crash at this step, to go on with what
}

type dropKey struct{ node, reason string }

// New starts the application. Mistakes in its definition fail the test. With a
// nil t, as in an Example, failures panic.
func New(t TB, app *streams.App, opts ...Option) *Driver {
	s := settings{partitions: 1, topics: map[string]int32{}, start: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, o := range opts {
		o(&s)
	}
	d := &Driver{t: t, app: app, manual: s.manual, now: s.start, inner: map[string]bool{}, dropped: map[dropKey]int64{}}
	d.given = slices.Sorted(maps.Keys(s.topics))
	d.cluster = &cluster{topics: map[string]*topic{}, count: func(topic string) int32 {
		if n := s.topics[topic]; n > 0 {
			return n
		}
		return s.partitions
	}}
	d.helper()
	d.check(d.open())
	return d
}

func (d *Driver) helper() {
	if d.t != nil {
		d.t.Helper()
	}
}

func (d *Driver) check(err error) {
	if err == nil {
		return
	}
	if d.t == nil {
		panic(err)
	}
	d.t.Helper()
	d.t.Fatalf("streamstest: %v", err)
}

// open creates the topics and starts all tasks.
func (d *Driver) open() error {
	top, err := d.app.Topology()
	if err != nil {
		return err
	}
	external := map[string]int32{}
	for _, sub := range top.Subs {
		for _, src := range sub.Sources {
			switch {
			case src.Internal:
			case src.Pattern != nil:
				external[src.Topic] = d.most(src.Pattern)
			default:
				external[src.Topic] = int32(len(d.cluster.topic(src.Topic).partitions))
			}
		}
	}
	counts, err := top.Resolve(external)
	if err != nil {
		return err
	}
	for _, it := range top.Internal {
		d.cluster.create(it.Name, counts.Topics[it.Name])
		d.inner[it.Name] = true
	}
	for i := range top.Globals {
		d.globals = append(d.globals, &global{Memory: state.NewMemory(), spec: &top.Globals[i]})
	}
	for i := range top.Subs {
		for p := range counts.Tasks[top.Subs[i].Name] {
			w := d.worker(&top.Subs[i], p)
			if err := w.start(); err != nil {
				return err
			}
			d.workers = append(d.workers, w)
		}
	}
	return nil
}

// most is the number of partitions of the largest topic that a pattern may match.
func (d *Driver) most(pattern *regexp.Regexp) int32 {
	n := d.cluster.count("")
	for _, topic := range d.given {
		if pattern.MatchString(topic) {
			n = max(n, d.cluster.count(topic))
		}
	}
	return n
}

// named reports a topic that the application names, or that is its own, so that it
// belongs to no pattern.
func (d *Driver) named(topic string) bool {
	if d.inner[topic] || slices.ContainsFunc(d.globals, func(g *global) bool { return g.spec.Topic == topic }) {
		return true
	}
	return slices.ContainsFunc(d.workers, func(w *worker) bool {
		return slices.Contains(w.sub.Sinks, topic) ||
			slices.ContainsFunc(w.sub.Sources, func(s topology.Source) bool { return s.Pattern == nil && s.Topic == topic })
	})
}

func (d *Driver) worker(sub *topology.Sub, partition int32) *worker {
	return &worker{
		named: d.named,
		sub:   sub, partition: partition, appID: d.app.ID(), cluster: d.cluster, committed: map[string]int64{},
		emit: func(o *task.Out) error {
			d.pending = append(d.pending, own(o))
			return nil
		},
		now: func() int64 { return d.now.UnixMilli() },
		global: func(name string) state.Store {
			for _, g := range d.globals {
				if g.spec.Name == name {
					return g
				}
			}
			return nil
		},
		wait: func(ctx context.Context, pause time.Duration) error {
			d.now = d.now.Add(pause)
			return ctx.Err()
		},
	}
}

// Now is the wall clock.
func (d *Driver) Now() time.Time { return d.now }

// Advance moves the wall clock and calls the timers that it makes due. Stream time
// follows records alone.
func (d *Driver) Advance(by time.Duration) {
	d.helper()
	d.check(d.TryAdvance(by))
}

// TryAdvance is Advance for timers that may make the application fail; it returns
// the error that Run would return.
func (d *Driver) TryAdvance(by time.Duration) error {
	d.now = d.now.Add(by)
	for _, w := range d.workers {
		if d.err == nil && w.task.NextTick() <= d.now.UnixMilli() {
			d.err = w.task.Tick(d.now.UnixMilli())
		}
	}
	if d.err != nil || d.manual {
		return d.err
	}
	return d.settle()
}

// Process runs what has been piped in, without a commit, until nothing
// visible is left. Only of use with ManualCommit.
func (d *Driver) Process() {
	d.helper()
	d.check(d.process())
}

// Commit commits once. Records for other tasks become visible to them and wait
// for the next Process or Commit.
func (d *Driver) Commit() {
	d.helper()
	d.check(d.process())
	d.check(d.flushAndCommit())
}

// Settle processes and commits until nothing is left to do.
func (d *Driver) Settle() {
	d.helper()
	d.check(d.settle())
}

// Crash kills every task: uncommitted output and state are gone, stores are
// rebuilt from their changelogs, and the application continues from the
// committed offsets.
func (d *Driver) Crash() {
	d.helper()
	d.check(d.restart())
	if !d.manual {
		d.check(d.settle())
	}
}

// restart is what a crash leaves: tasks that start from what is committed.
func (d *Driver) restart() error {
	d.pending = nil
	for _, w := range d.workers {
		d.remember(w)
		if err := w.stop(); err != nil {
			return err
		}
		if err := w.start(); err != nil {
			return err
		}
	}
	return nil
}

// Written are the records that the application has written to topics other than
// its own internal ones, committed since the last call, in the order in which
// they were emitted.
func (d *Driver) Written() []Raw {
	w := d.written
	d.written = nil
	return w
}

// Topic is what is committed to one partition of a topic, internal topics
// included.
func (d *Driver) Topic(name string, partition int32) []Raw {
	var all []Raw
	if t := d.cluster.topic(name); int(partition) < len(t.partitions) {
		for i := range t.partitions[partition] {
			all = append(all, raw(&t.partitions[partition][i].Record))
		}
	}
	return all
}

func raw(r *task.Record) Raw {
	return Raw{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
		Time: time.UnixMilli(r.TimeMs).UTC(), Key: r.Key, Value: r.Value, Headers: r.Headers}
}

func (d *Driver) process() error {
	for busy := true; busy; {
		busy = false
		if err := d.follow(); err != nil {
			return err
		}
		for _, w := range d.workers {
			for d.err == nil {
				did, err := w.process()
				if err != nil {
					d.err = err
				}
				if !did {
					break
				}
				busy = true
				if crashed, err := d.step(w.name() + " had processed a record"); err != nil {
					return err
				} else if crashed {
					continue
				}
				if w.asked {
					w.asked = false
					if err := d.flushAndCommit(); err != nil {
						return err
					}
				}
			}
		}
	}
	return d.err
}

// flush lets the tasks send on what they have held back for the commit.
func (d *Driver) flush() error {
	for _, w := range d.workers {
		if d.err == nil {
			d.err = w.task.Flush()
		}
	}
	return d.err
}

func (d *Driver) flushAndCommit() error {
	if err := d.flush(); err != nil {
		return err
	}
	if crashed, err := d.step("the tasks were flushed"); err != nil {
		return err
	} else if crashed {
		if err := errors.Join(d.process(), d.flush()); err != nil {
			return err
		}
	}
	if err := d.commit(); err != nil {
		return err
	}
	_, err := d.step("a transaction was committed")
	return err
}

func (d *Driver) commit() error {
	if d.err != nil {
		return d.err
	}
	for _, w := range d.workers {
		if err := w.commit(); err != nil {
			d.err = fmt.Errorf("commit: %w", err)
			return d.err
		}
	}
	for _, o := range d.pending {
		r := d.cluster.append(o)
		if !d.inner[o.Topic] {
			d.written = append(d.written, raw(&r))
		}
	}
	d.pending = d.pending[:0]
	return nil
}

func (d *Driver) settle() error {
	for {
		if err := d.process(); err != nil {
			return err
		}
		if err := d.flush(); err != nil {
			return err
		}
		crashed, err := d.step("the tasks were flushed")
		if err != nil {
			return err
		} else if crashed {
			continue
		}
		quiet := len(d.pending) == 0
		if err := d.commit(); err != nil {
			return err
		}
		crashed, err = d.step("a transaction was committed")
		if err != nil || quiet && !crashed {
			return err
		}
	}
}

// remember keeps the counters of a task that ends.
func (d *Driver) remember(w *worker) {
	for _, x := range w.task.Dropped() {
		d.dropped[dropKey{x.Node, x.Reason}] += x.N
	}
}

// Dropped counts the records that a node left out for a reason: "late", "null
// key", "null value", "skipped" or "dead letter".
func (d *Driver) Dropped(node, reason string) int64 {
	n := d.dropped[dropKey{node, reason}]
	for _, w := range d.workers {
		for _, x := range w.task.Dropped() {
			if x.Node == node && x.Reason == reason {
				n += x.N
			}
		}
	}
	return n
}
