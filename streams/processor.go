package streams

import (
	"context"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
)

// TaskContext is what a processor, or a Try function of an operator with Use, gets
// as its context.
type TaskContext interface {
	context.Context
	// StreamTime is the highest timestamp that the task has seen, the zero time
	// before the first record.
	StreamTime() time.Time
	// WallClock is the time of day; under a test, that of the driver.
	WallClock() time.Time
	// Commit asks for a commit as soon as the record, or the timer, at hand is
	// done.
	Commit()
	// Source is where the record at hand is from; ok is false in a timer.
	Source() (topic string, partition int32, offset int64, ok bool)
}

// Processor is an operator of one's own. There is one for each task, used by one
// goroutine at a time. What it remembers outside of stores is lost in a crash, and
// when its task moves.
//
// When Process or a timer fails, what it has sent and stored before stays, so it
// is not called again: Retry counts as used up.
type Processor[K, V, KO, VO any] interface {
	// Init runs before the first record, also after a crash. It sets timers; it
	// cannot send records.
	Init(TaskContext, *Emitter[KO, VO]) error
	// Process takes a record, which is valid during the call.
	Process(TaskContext, *Record[K, V]) error
	// Close runs once, after the last record. The task's transaction may be over.
	Close() error
}

// Clock is what a timer runs by.
type Clock int

const (
	// StreamTime moves with the records of a task, and only with them.
	StreamTime Clock = operator.StreamClock
	// WallClock is the time of day.
	WallClock Clock = operator.WallClock
)

// Emitter is the way out of a processor. Records that it sends are processed to
// their end before the call returns. If something fails behind it, it does so
// there.
type Emitter[K, V any] struct {
	to    *operator.Emitter[K, V]
	scope *operator.Scope
}

// Emit sends a record with time and headers of the one at hand; in a timer, with
// the timer's time.
func (e *Emitter[K, V]) Emit(k K, v V) { e.to.Send("", k, v, -1, nil) }

// Forward sends a record. A zero Time and nil Headers stand for those of the record
// at hand.
func (e *Emitter[K, V]) Forward(r Record[K, V]) { e.ForwardTo("", r) }

// ForwardTo sends a record to one child alone: a stream made with Child.
func (e *Emitter[K, V]) ForwardTo(child string, r Record[K, V]) {
	ms := int64(-1)
	if !r.Time.IsZero() {
		ms = r.Time.UnixMilli()
	}
	e.to.Send(child, r.Key, r.Value, ms, r.Headers)
}

// Every calls f at regular times: at multiples of the interval since 1970. Times
// that were missed are skipped. By StreamTime the first record makes a call and a
// call comes after the record that moves the time; f gets the stream time. By
// WallClock the first call is at the next multiple, and f gets the time of day.
//
// The calls are not stored: Init sets them again after a crash. An error of f goes
// the way of all failures, in the phase PhaseTimer.
func (e *Emitter[K, V]) Every(interval time.Duration, by Clock, f func(TaskContext, time.Time) error) (cancel func()) {
	return e.every(interval, by, nil, f)
}

// EveryFrom is Every with the times start, start+interval and so on, from the first
// that has not passed.
func (e *Emitter[K, V]) EveryFrom(start time.Time, interval time.Duration, by Clock, f func(TaskContext, time.Time) error) (cancel func()) {
	return e.every(interval, by, &start, f)
}

func (e *Emitter[K, V]) every(interval time.Duration, by Clock, start *time.Time, f func(TaskContext, time.Time) error) func() {
	return e.to.Every(int(by), interval, start, func(nowMs int64) error { return f(e.scope, time.UnixMilli(nowMs).UTC()) })
}

// TimersRef are declared timers.
type TimersRef[K any] struct {
	*declaration
	clock Clock
}

// Timers declares timers, one at a time for each key. Unlike those of Every they
// are stored: a timer that is set is called once, also when a crash or a move of
// the task lies in between. The options are KeySerde and InMemory.
func (a *App) Timers[K any](name string, by Clock, opts ...Opt) TimersRef[K] {
	d, _, key, _ := declare[K, int64](a, "timers", name, forTimers, opts)
	d.open = operator.OpenTimers(name, key, int(by))
	return TimersRef[K]{d, by}
}

// In are the timers as the function with this context has them.
func (r TimersRef[K]) In(ctx context.Context) Timers[K] {
	return handle[*operator.KeyTimers[K]](ctx, r.declaration)
}

// Timers are timers by key; see KV for contexts and errors.
type Timers[K any] interface {
	// Set makes the timer of a key due at a time, in place of one that it has.
	// One whose time has passed already is called at once when this record is done.
	Set(k K, at time.Time) error
	// Cancel takes the timer of a key back.
	Cancel(K) error
	// At is when the timer of a key is due.
	At(K) (at time.Time, ok bool, err error)
}

// OnTimer sets, in Init, what timers call when they are due, in order of time and
// key. Records that the call emits have the time when the timer was due; by
// WallClock, the time of the call.
func (e *Emitter[K, V]) OnTimer[TK any](r TimersRef[TK], f func(c TaskContext, k TK, due time.Time) error) {
	timers := handle[*operator.KeyTimers[TK]](e.scope, r.declaration)
	timers.OnTimer(func(k TK, due time.Time, nowMs int64) error {
		at := due.UnixMilli()
		if r.clock == WallClock {
			at = nowMs
		}
		e.to.At(at)
		return f(e.scope, k, due)
	})
}

// Process runs records through a processor. f makes one for each task. The key may
// change: what keeps state by key behind it goes through a repartition topic first;
// see ProcessValues.
func (s Stream[K, V]) Process[KO, VO any](f func() Processor[K, V, KO, VO], opts ...Opt) Stream[KO, VO] {
	next := process(s, f, opts)
	next.rekeyed = true
	return next
}

// ProcessValues is Process for a processor that sends records with the key of the
// one at hand, or with a key that belongs to the task: nothing is repartitioned
// behind it.
func (s Stream[K, V]) ProcessValues[VO any](f func() Processor[K, V, K, VO], opts ...Opt) Stream[K, VO] {
	next := process(s, f, opts)
	next.key, next.rekeyed = s.key, s.rekeyed
	return next
}

func process[K, V, KO, VO any](s Stream[K, V], f func() Processor[K, V, KO, VO], opts []Opt) Stream[KO, VO] {
	o := s.app.collect("process behind "+s.node.Name, opts, forProcess)
	if len(o.uses) > 0 {
		s = s.repartition(o.as, false, options{onError: o.onError}) // stores are kept by key
	}
	next := Stream[KO, VO]{place: behind[KO, VO](s.app, s.node, "process", o.as)}
	op := &operator.Process[K, V, KO, VO]{Node: next.node.Name, Handler: s.app.handler(o), Uses: s.app.use(next.node, o),
		Children: map[string]*operator.Outlet[KO, VO]{}, Out: next.out}
	op.New = func(scope *operator.Scope, to *operator.Emitter[KO, VO]) operator.Instance[K, V] {
		p, out := f(), &Emitter[KO, VO]{to, scope}
		var in Record[K, V]
		return operator.Instance[K, V]{
			Init: func() error { return p.Init(scope, out) },
			Process: func(r *operator.Record[K, V]) error {
				in.show(r)
				return p.Process(scope, &in)
			},
			Close: p.Close,
		}
	}
	if len(o.uses) > 0 {
		s.app.graph.Copartition(s.node, s.node)
	}
	next.child = func(name string, out any) { op.Children[name] = out.(*operator.Outlet[KO, VO]) }
	s.out.Attach(next.node.Name, op.Build)
	return next
}

// Child is the part of a processor's output that is sent to it by name, with
// ForwardTo, and what is sent to all. It is of use directly behind Process.
func (s Stream[K, V]) Child(name string, opts ...Opt) Stream[K, V] {
	o := s.app.collect("child "+name+" of "+s.node.Name, opts, forChild)
	next := s
	next.place, next.child = behind[K, V](s.app, s.node, "child-"+name, o.as), nil
	if s.child == nil {
		s.app.graph.Fail(next.node, "only a processor has children")
		return next
	}
	s.child(name, next.out)
	s.out.Attach(next.node.Name, func(b *operator.Builder) (operator.Sink[K, V], error) {
		return operator.Join(b, next.out, func() (operator.Sink[K, V], error) { return next.out.Build(b) })
	})
	return next
}
