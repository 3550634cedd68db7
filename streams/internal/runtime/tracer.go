package runtime

import (
	"context"

	"github.com/millrace/millrace/streams/internal/task"
)

// Tracer follows records through the application. Its methods are called by all
// workers.
type Tracer interface {
	// Begin is called before a task processes a record. User functions, and the
	// other methods, get what it returns, or a context with its values.
	Begin(ctx context.Context, r *task.Record) context.Context
	// End is called when all that follows from the record is done.
	End(ctx context.Context, err error)
	// Carry returns the headers of a record that is sent in this context.
	Carry(ctx context.Context, h []task.Header) []task.Header
}

// trace is the context of a task that is followed: its values are those of the
// record at hand. The task's goroutine owns it.
type trace struct {
	context.Context // of the task
	tracer          Tracer
	now             context.Context // of the record at hand, nil between records
}

// Value implements context.Context.
func (t *trace) Value(key any) any {
	if t.now != nil {
		return t.now.Value(key) // it is made of the task's
	}
	return t.Context.Value(key)
}

// process runs a task on a record.
func (t *trace) process(to task.Task, r *task.Record) error {
	t.now = t.tracer.Begin(t.Context, r)
	err := to.Process(r)
	t.tracer.End(t.now, err)
	t.now = nil
	return err
}

// carry is the headers of a record that is sent.
func (t *trace) carry(h []task.Header) []task.Header {
	if t == nil || t.now == nil {
		return h
	}
	return t.tracer.Carry(t.now, h)
}
