package streamstest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
)

// worker owns one task, its stores and its positions.
type worker struct {
	sub       *topology.Sub
	partition int32
	appID     string
	cluster   *cluster
	emit      func(*task.Out) error
	wait      func(context.Context, time.Duration) error
	now       func() int64
	global    func(name string) state.Store
	named     func(topic string) bool // the application has it, not by a pattern
	asked     bool                    // the task wants a commit now

	task   task.Task
	stores map[string]*state.Overlay
	// next is the offset of the next record to process, committed that after
	// the last commit; progress goes with the latter.
	next, committed map[string]int64
	progress        string
	heads           map[string]head // by topic, where the task says the time
}

// head is the next record of a source with the time that the task gives it.
type head struct {
	offset int64
	record task.Record
}

// start makes the task and its stores from what is committed.
func (w *worker) start() error {
	w.stores, w.next, w.heads, w.asked = map[string]*state.Overlay{}, map[string]int64{}, map[string]head{}, false
	for topic, offset := range w.committed {
		w.next[topic] = offset
	}
	for i := range w.sub.Stores {
		o, err := w.restore(&w.sub.Stores[i])
		if err != nil {
			return err
		}
		w.stores[w.sub.Stores[i].Name] = o
	}
	var err error
	w.task, err = w.sub.New(task.Env{
		AppID: w.appID, Partition: w.partition, Progress: []string{w.progress}, Emit: w.emit, Wait: w.wait,
		Now: w.now, Commit: func() { w.asked = true },
		Partitions: func(topic string) (int32, error) { return int32(len(w.cluster.topic(topic).partitions)), nil },
		Store: func(name string) (state.Store, error) {
			if s := w.stores[name]; s != nil {
				return s, nil
			}
			if g := w.global(name); g != nil {
				return g, nil
			}
			return nil, fmt.Errorf("sub-topology %s has no store %s", w.sub.Name, name)
		},
	})
	return err
}

func (w *worker) name() string { return fmt.Sprintf("task %s, partition %d,", w.sub.Name, w.partition) }

// log is the partition of a topic that this task has, if any.
func (w *worker) log(topic string) []entry {
	t := w.cluster.topic(topic)
	if int(w.partition) >= len(t.partitions) {
		return nil
	}
	return t.partitions[w.partition]
}

// rows is the fold of the committed changelog of a store, nothing when it has none.
func (w *worker) rows(s *topology.Store) map[string][]byte {
	if s.Changelog == "" {
		return nil
	}
	log := w.log(s.Changelog)
	if s.FromSource != nil {
		log = log[:w.committed[s.Changelog]]
	}
	rows := map[string][]byte{}
	for i := range log {
		key, value, ok := log[i].Key, log[i].Value, true
		if s.FromSource != nil {
			key, value, ok = s.FromSource(&log[i].Record)
		}
		switch {
		case !ok:
		case value == nil:
			delete(rows, string(key))
		default:
			rows[string(key)] = bytes.Clone(value)
		}
	}
	return rows
}

// restore makes a store from its changelog.
func (w *worker) restore(s *topology.Store) (*state.Overlay, error) {
	o := state.NewOverlay(state.NewMemory(), state.OverlayOptions{Name: s.Name, Windowed: s.Windowed})
	for key, value := range w.rows(s) {
		if err := o.Put([]byte(key), value); err != nil {
			return nil, err
		}
	}
	return o, o.Commit(w.position(s))
}

func (w *worker) position(s *topology.Store) state.Position {
	if s.Changelog == "" {
		return state.Position{}
	}
	return state.Position{TopicID: [16]byte{1}, Next: int64(len(w.log(s.Changelog))), LeaderEpoch: -1}
}

// process runs one record, the one with the lowest timestamp among the next of
// each source, and reports whether there was one.
func (w *worker) process() (bool, error) {
	var r *task.Record
	for _, src := range w.sources() {
		log, at := w.log(src.Topic), w.next[src.Topic]
		if at >= int64(len(log)) {
			continue
		}
		next := &log[at].Record
		if src.Timed {
			next = w.timed(next)
		}
		if r == nil || next.TimeMs < r.TimeMs {
			r = next
		}
	}
	if r == nil {
		return false, nil
	}
	w.next[r.Topic]++
	return true, w.task.Process(r)
}

// sources are those of the sub-topology, with the topics there are in the place of
// patterns.
func (w *worker) sources() []topology.Source {
	if !slices.ContainsFunc(w.sub.Sources, func(s topology.Source) bool { return s.Pattern != nil }) {
		return w.sub.Sources
	}
	var all []topology.Source
	for _, src := range w.sub.Sources {
		if src.Pattern == nil {
			all = append(all, src)
			continue
		}
		for _, topic := range slices.Sorted(maps.Keys(w.cluster.topics)) {
			if src.Pattern.MatchString(topic) && !w.named(topic) {
				one := src
				one.Topic = topic
				all = append(all, one)
			}
		}
	}
	return all
}

// timed is the record with the time that the task gives it, which is asked for
// once.
func (w *worker) timed(r *task.Record) *task.Record {
	h, ok := w.heads[r.Topic]
	if !ok || h.offset != r.Offset {
		h = head{r.Offset, *r}
		h.record.TimeMs = w.task.TimeMs(r)
		w.heads[r.Topic] = h
	}
	return &h.record
}

// commit logs the stores' changes and makes everything since the last commit
// permanent, but for the output, which is the driver's.
func (w *worker) commit() error {
	for i := range w.sub.Stores {
		s := &w.sub.Stores[i]
		o := w.stores[s.Name]
		if s.FromSource == nil && s.Changelog != "" {
			err := o.Log(func(key, value []byte) error {
				w.cluster.append(own(&task.Out{Topic: s.Changelog, Partition: w.partition, TimeMs: max(w.task.StreamTimeMs(), 0), Key: key, Value: value}))
				return nil
			})
			if err != nil {
				return err
			}
		}
		if err := o.Commit(w.position(s)); err != nil {
			return err
		}
	}
	for topic, offset := range w.next {
		w.committed[topic] = offset
	}
	w.progress = w.task.Progress()
	return nil
}

// stop drops what is not committed and checks the rest against the changelog.
func (w *worker) stop() error {
	if err := w.task.Close(); err != nil {
		return err
	}
	for i := range w.sub.Stores {
		s := &w.sub.Stores[i]
		o := w.stores[s.Name]
		o.Abort()
		if s.Changelog == "" {
			if err := o.Drop(); err != nil {
				return err
			}
			continue
		}
		want := w.rows(s)
		for row, err := range o.Range(nil, nil) {
			if err != nil {
				return err
			}
			if v, ok := want[string(row.Key)]; !ok || !bytes.Equal(v, row.Value) {
				return fmt.Errorf("store %s, partition %d: row %x is %x, its changelog says %x", s.Name, w.partition, row.Key, row.Value, v)
			}
			delete(want, string(row.Key))
		}
		for key := range want {
			return fmt.Errorf("store %s, partition %d: row %x of the changelog is missing", s.Name, w.partition, key)
		}
		if err := o.Drop(); err != nil {
			return err
		}
	}
	return nil
}
