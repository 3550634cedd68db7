package operator

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/streams/internal/task"
)

// Process runs a processor of the user's: one instance for each task.
//
// A function of it that fails is not called again, as what it has sent and stored
// stays: Retry counts as used up.
type Process[K, V, KO, VO any] struct {
	Node     string
	Handler  task.Handler
	Uses     []StoreUse
	New      func(*Scope, *Emitter[KO, VO]) Instance[K, V]
	Children map[string]*Outlet[KO, VO] // that can be sent to by name; all are behind Out too
	Out      *Outlet[KO, VO]
}

// Instance is one processor; functions may be nil.
type Instance[K, V any] struct {
	Init    func() error
	Process func(*Record[K, V]) error
	Close   func() error
}

// Build makes the node of one task.
func (p *Process[K, V, KO, VO]) Build(b *Builder) (Sink[K, V], error) {
	n := &process[K, V, KO, VO]{site: b.Site(p.Node, task.Process, p.Handler)}
	if err := b.open(n.site, p.Uses); err != nil {
		return nil, err
	}
	next, err := p.Out.Build(b)
	if err != nil {
		return nil, err
	}
	n.emit = Emitter[KO, VO]{site: n.site, next: next, key: NilOf[KO](), val: NilOf[VO](), children: map[string]Sink[KO, VO]{}}
	for name, out := range p.Children {
		child, err := Join(b, out, func() (Sink[KO, VO], error) { return out.Build(b) })
		if err != nil {
			return nil, err
		}
		n.emit.children[name] = child
	}
	n.user = p.New(n.site.ctx.(*Scope), &n.emit)
	b.t.inits = append(b.t.inits, n.init)
	b.t.closers = append(b.t.closers, n.close)
	return n, nil
}

type process[K, V, KO, VO any] struct {
	site *Site
	user Instance[K, V]
	emit Emitter[KO, VO]
}

func (n *process[K, V, KO, VO]) init() (err error) {
	if n.user.Init != nil {
		err = n.user.Init()
	}
	n.emit.open = true
	if err = errors.Join(err, n.site.task.fatal); err != nil {
		return fmt.Errorf("node %s: %w", n.site.node, err)
	}
	return nil
}

func (n *process[K, V, KO, VO]) close() error {
	if n.user.Close == nil {
		return nil
	}
	return n.user.Close()
}

// Push implements Sink.
func (n *process[K, V, KO, VO]) Push(r *Record[K, V]) error {
	n.emit.timeMs, n.emit.headers = r.TimeMs, r.Headers
	n.site.enter()
	err := n.user.Process(r)
	n.site.leave()
	if err != nil {
		err = n.site.once(err)
	}
	return errors.Join(err, n.site.task.fatal)
}

// Emitter is the way out of a processor. What goes wrong behind it does so there:
// the processor goes on.
type Emitter[K, V any] struct {
	site     *Site
	next     Sink[K, V]
	children map[string]Sink[K, V]
	key      Nil[K]
	val      Nil[V]
	open     bool // Init is over
	timeMs   int64
	headers  []task.Header
	out      Record[K, V]
}

// errInit reports a record that was sent too early.
var errInit = errors.New("a processor cannot send records in Init: nothing is being processed")

// Send passes a record on, to one child if it is named. A negative time stands for
// that of the record, or the timer, at hand; nil headers for its headers.
func (e *Emitter[K, V]) Send(child string, k K, v V, timeMs int64, headers []task.Header) {
	t, to := e.site.task, e.next
	if child != "" {
		if to = e.children[child]; to == nil {
			e.site.fail(fmt.Errorf("node %s has no child %q", e.site.node, child))
			return
		}
	}
	if !e.open {
		e.site.fail(errInit)
		return
	}
	if timeMs < 0 {
		timeMs = e.timeMs
	}
	if headers == nil {
		headers = e.headers
	}
	e.out = Record[K, V]{Key: k, Value: v, TimeMs: timeMs, Headers: headers}
	e.out.NullKey, e.out.NullValue = e.key.Is(&e.out.Key), e.val.Is(&e.out.Value)
	t.at = nil
	if err := pushBranch(t, to, &e.out); err != nil {
		e.site.fail(err)
	}
	t.at = e.site
}

// At sets the time that stands for the one at hand, in a timer.
func (e *Emitter[K, V]) At(timeMs int64) { e.timeMs, e.headers = timeMs, nil }

// Every calls fn at each start + n*interval of a clock, from the first that is not
// before the clock's time on. Without a start the grid begins at 1970, and the
// first time is after now by the wall clock, so that a restart changes nothing.
func (e *Emitter[K, V]) Every(clock int, interval time.Duration, start *time.Time, fn func(nowMs int64) error) (cancel func()) {
	x := &regular{site: e.site, intervalMs: interval.Milliseconds()}
	x.fn = func(nowMs int64) error {
		e.At(nowMs)
		return fn(nowMs)
	}
	if x.intervalMs < 1 {
		e.site.fail(fmt.Errorf("node %s: an interval of %v, at least 1 ms is needed", e.site.node, interval))
		x.intervalMs = 1
	}
	t := e.site.task
	first := t.streamMs + 1
	if clock == WallClock {
		first = t.wallMs()
		if start == nil {
			first++
		}
	}
	var from int64
	if start != nil {
		from = start.UnixMilli()
	}
	if x.nextMs = from; first > from {
		x.nextMs += (first - from + x.intervalMs - 1) / x.intervalMs * x.intervalMs
	}
	t.timers[clock] = append(t.timers[clock], x)
	return func() { x.nextMs = never }
}
