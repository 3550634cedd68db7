package runtime_test

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
)

// counting is an application with everything the runtime has to handle: a
// source that is re-keyed through a repartition topic, a table that is its own
// changelog, a counting store with a changelog, and a sink.
//
//	events (key any, value = word) -> repartition by word
//	repartition + words (table: word -> label) -> count per word -> out
func counting(app, events, words, out string, inMemory bool) *topology.Topology {
	shuffle := topology.NewInternal(app, "words", topology.Repartition, "count")
	counts := topology.NewInternal(app, "counts", topology.Changelog, "count")
	return &topology.Topology{
		AppID:    app,
		Internal: []topology.InternalTopic{counts, shuffle},
		Subs: []topology.Sub{
			{
				Name: "shuffle", Sources: []topology.Source{{Topic: events}}, Sinks: []string{shuffle.Name},
				New: func(e task.Env) (task.Task, error) { return &rekey{env: e, to: shuffle.Name}, nil },
			},
			{
				Name: "count", Sinks: []string{out},
				Sources:     []topology.Source{{Topic: words}, {Topic: shuffle.Name, Internal: true}},
				Copartition: [][]string{{words, shuffle.Name}},
				Stores: []topology.Store{
					{Name: "counts", Changelog: counts.Name, InMemory: inMemory},
					{Name: "labels", Changelog: words, InMemory: inMemory, FromSource: labelRow},
				},
				New: func(e task.Env) (task.Task, error) { return newCounter(e, words, out) },
			},
		},
	}
}

func labelRow(r *task.Record) (key, value []byte, ok bool) { return r.Key, r.Value, r.Key != nil }

// clockTask is what both tasks share: stream time, told in Progress.
type clockTask struct{ time int64 }

func (c *clockTask) see(ms int64)                { c.time = max(c.time, ms) }
func (c *clockTask) Progress() string            { return fmt.Sprint(c.time) }
func (c *clockTask) Tick(int64) error            { return nil }
func (c *clockTask) NextTick() int64             { return math.MaxInt64 }
func (c *clockTask) Flush() error                { return nil }
func (c *clockTask) TimeMs(r *task.Record) int64 { return r.TimeMs }
func (c *clockTask) StreamTimeMs() int64         { return c.time }
func (c *clockTask) Dropped() []task.Dropped     { return nil }
func (c *clockTask) Close() error                { return nil }

type rekey struct {
	clockTask
	env task.Env
	to  string
	out task.Out
}

func (t *rekey) Process(r *task.Record) error {
	t.see(r.TimeMs)
	t.out = task.Out{Topic: t.to, Partition: task.ByKey, TimeMs: r.TimeMs, Key: r.Value, Headers: r.Headers}
	return t.env.Emit(&t.out)
}

type counter struct {
	clockTask
	env            task.Env
	words          string
	counts, labels state.Store
	out            task.Out
	buf            [8]byte
	text           []byte
}

func newCounter(e task.Env, words, out string) (task.Task, error) {
	t := &counter{env: e, words: words, out: task.Out{Topic: out, Partition: e.Partition}}
	for _, p := range e.Progress {
		var ms int64
		if _, err := fmt.Sscan(p, &ms); err == nil {
			t.see(ms)
		}
	}
	var err error
	if t.counts, err = e.Store("counts"); err != nil {
		return nil, err
	}
	t.labels, err = e.Store("labels")
	return t, err
}

func (t *counter) Process(r *task.Record) error {
	t.see(r.TimeMs)
	if r.Topic == t.words {
		return t.labels.Put(r.Key, r.Value)
	}
	old, ok, err := t.counts.Get(r.Key)
	if err != nil {
		return err
	}
	var n uint64
	if ok {
		n = binary.BigEndian.Uint64(old)
	}
	n++
	binary.BigEndian.PutUint64(t.buf[:], n)
	if err := t.counts.Put(r.Key, t.buf[:]); err != nil {
		return err
	}
	label, ok, err := t.labels.Get(r.Key)
	if err != nil {
		return err
	}
	if !ok {
		label = []byte("?")
	}
	t.text = fmt.Appendf(t.text[:0], "%s %d", label, n)
	t.out.TimeMs, t.out.Key, t.out.Value = r.TimeMs, r.Key, t.text
	return t.env.Emit(&t.out)
}
