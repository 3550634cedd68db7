package operator

import (
	"slices"

	"github.com/millrace/millrace/streams/internal/task"
)

// Counting and wrapping stand between the nodes, as nodes of their own that are
// there only if somebody asked: a task that nobody watches pays nothing.

// seenBy finds the counter of a node.
func (t *Task) seenBy(node string) *seen {
	if at := slices.IndexFunc(t.seen, func(s *seen) bool { return s.Node == node }); at >= 0 {
		return t.seen[at]
	}
	s := &seen{task.Seen{Node: node}}
	t.seen = append(t.seen, s)
	return s
}

// Seen implements task.Watched.
func (t *Task) Seen() []task.Seen {
	all := make([]task.Seen, len(t.seen))
	for i, s := range t.seen {
		all[i] = s.Seen
	}
	return all
}

// counted counts the records of the node behind it.
type counted[K, V any] struct {
	next Sink[K, V]
	seen *seen
}

// Push implements Sink.
func (n *counted[K, V]) Push(r *Record[K, V]) error {
	n.seen.Records++
	return n.next.Push(r)
}

// wrapped calls a function of the user's around the node behind it. A node takes
// one record at a time, so the one at hand is a field and no closure is made for it.
type wrapped[K, V any] struct {
	task   *Task
	around task.Wrapper
	next   Sink[K, V]
	at     *Record[K, V]
	work   func() error
}

func wrap[K, V any](t *Task, around task.Wrapper, next Sink[K, V]) *wrapped[K, V] {
	w := &wrapped[K, V]{task: t, around: around, next: next}
	w.work = func() error { return w.next.Push(w.at) }
	return w
}

// Push implements Sink.
func (n *wrapped[K, V]) Push(r *Record[K, V]) error {
	before := n.at
	n.at = r
	err := n.around(n.task.ctx, n.work)
	n.at = before
	return err
}

// watchEntry is watch for a source.
func watchEntry(t *Task, node string, e Entry) Entry {
	if t.env.Around != nil {
		if around := t.env.Around(node); around != nil {
			w := &wrappedEntry{Entry: e, task: t, around: around}
			w.work = func() error { return w.Entry.Process(w.at) }
			e = w
		}
	}
	if t.env.Watch {
		e = &countedEntry{Entry: e, seen: t.seenBy(node)}
	}
	return e
}

type countedEntry struct {
	Entry
	seen *seen
}

// Process implements Entry.
func (e *countedEntry) Process(r *task.Record) error {
	e.seen.Records++
	return e.Entry.Process(r)
}

func (e *countedEntry) inner() Entry { return e.Entry }

type wrappedEntry struct {
	Entry
	task   *Task
	around task.Wrapper
	at     *task.Record
	work   func() error
}

// Process implements Entry.
func (e *wrappedEntry) Process(r *task.Record) error {
	e.at = r
	return e.around(e.task.ctx, e.work)
}

func (e *wrappedEntry) inner() Entry { return e.Entry }
