package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// errReadOnly reports a write to a copy.
var errReadOnly = errors.New("streams: a global table cannot be written to")

// readOnly is a global table as tasks see it.
type readOnly struct{ *state.Memory }

// Put implements state.Store.
func (readOnly) Put(_, _ []byte) error { return errReadOnly }

// Delete implements state.Store.
func (readOnly) Delete([]byte) error { return errReadOnly }

// Expire implements state.Store.
func (readOnly) Expire(_, _ []byte) error { return errReadOnly }

// openGlobals reads all global tables to where their topics end now.
func (w *worker) openGlobals(ctx context.Context) error {
	var parts []session.TopicPartition
	for i := range w.plan.app.Globals {
		g := &w.plan.app.Globals[i]
		for p := range w.plan.topics[g.Topic].Partitions {
			parts = append(parts, session.TopicPartition{Topic: g.Topic, Partition: int32(p)})
		}
	}
	if len(parts) == 0 {
		return nil
	}
	starts, err := w.cluster.List(ctx, session.Start, parts)
	if err != nil {
		return err
	}
	ends, err := w.cluster.List(ctx, session.StableEnd, parts)
	if err != nil {
		return err
	}
	for i := range w.plan.app.Globals {
		g := &global{spec: &w.plan.app.Globals[i], rows: state.NewMemory()}
		g.row = rowOf(g.spec.Row)
		for _, part := range parts {
			if part.Topic == g.spec.Topic {
				g.feeds = append(g.feeds, w.reader.Add(part, starts[part]))
			}
		}
		w.globals = append(w.globals, g)
	}
	for !w.globalsAt(ends) {
		if err := w.followGlobals(); err != nil {
			return err
		}
		if w.globalsAt(ends) {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.reader.Arrived():
		}
	}
	return nil
}

func (w *worker) globalsAt(ends map[session.TopicPartition]int64) bool {
	for _, g := range w.globals {
		for _, f := range g.feeds {
			if f.Position() < ends[f.Part()] {
				return false
			}
		}
	}
	return true
}

// followGlobals takes in what has arrived.
func (w *worker) followGlobals() error {
	var rows [1]state.Row
	for _, g := range w.globals {
		for _, f := range g.feeds {
			for r, ok := f.Head(); ok; r, ok = f.Head() {
				key, value, ok := g.row(r)
				if ok {
					rows[0] = state.Row{Key: key, Value: value}
					if err := g.rows.Apply(rows[:], state.Position{}); err != nil {
						return err
					}
				} else {
					w.log.Warn("global table: a record has no key or does not decode", "topic", g.spec.Topic, "offset", r.Offset)
				}
				f.Pop()
			}
			if err := f.Err(); err != nil {
				return fmt.Errorf("streams: global table %s: %w", g.spec.Name, err)
			}
		}
	}
	return nil
}

// store returns a store of a task, or a global table.
func (w *worker) store(a *active, name string) (state.Store, error) {
	for _, g := range w.globals {
		if g.spec.Name == name {
			return readOnly{g.rows}, nil
		}
	}
	return a.find(name)
}
