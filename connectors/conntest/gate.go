package conntest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/connectors"
)

// Outer points, at the border between runner and connector. The inner ones are
// those of package connectors.
const (
	openCall     = "open/call"
	openReturn   = "open/return"
	commitCall   = "commit/call"
	commitReturn = "commit/return"
)

// openPoints and commitPoints are in the order in which a call passes them.
var (
	openPoints   = []string{openCall, connectors.PointFence, openReturn}
	commitPoints = []string{commitCall, connectors.PointData, connectors.PointPosition, connectors.PointCommitted, commitReturn}
)

// crashed is what a killed call panics with: the stack unwinds as it would not
// in a killed process, but nothing after the point runs except clean-up.
type crashed struct{ point string }

// gate is the shim between framework and connector: a sink whose calls can be
// watched, killed, frozen or given another answer at each point. It is safe for
// concurrent use; the sink inside is still called by one goroutine at a time.
type gate struct {
	connectors.TxSink

	mu    sync.Mutex
	at    func(ctx context.Context, point string) error // what happens at a point; nil = nothing
	seen  map[string]int
	ended bool // killed: every later call fails
}

func newGate(s connectors.TxSink) *gate { return &gate{TxSink: s, seen: map[string]int{}} }

// onPoint sets what happens at points.
func (g *gate) onPoint(f func(ctx context.Context, point string) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at = f
}

func (g *gate) reach(ctx context.Context, point string) error {
	g.mu.Lock()
	g.seen[point]++
	f, ended := g.at, g.ended
	g.mu.Unlock()
	if ended {
		return errKilled
	}
	if f == nil {
		return nil
	}
	return f(ctx, point)
}

// times returns how often a point was reached.
func (g *gate) times(point string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[point]
}

var errKilled = errors.New("conntest: this process was killed")

// Open passes the call on.
func (g *gate) Open(ctx context.Context, as []connectors.Assignment) ([]connectors.Position, error) {
	ctx = connectors.WithPoints(ctx, g.reach)
	if err := g.reach(ctx, openCall); err != nil {
		return nil, err
	}
	at, err := g.TxSink.Open(ctx, as)
	if err != nil {
		return at, err
	}
	return at, g.reach(ctx, openReturn)
}

// Commit passes the call on.
func (g *gate) Commit(ctx context.Context, b *connectors.Batch) error {
	ctx = connectors.WithPoints(ctx, g.reach)
	if err := g.reach(ctx, commitCall); err != nil {
		return err
	}
	if err := g.TxSink.Commit(ctx, b); err != nil {
		return err
	}
	return g.reach(ctx, commitReturn)
}

// Prepare passes the call on, unless this process was killed.
func (g *gate) Prepare(ctx context.Context) error {
	g.mu.Lock()
	ended := g.ended
	g.mu.Unlock()
	if ended {
		return errKilled
	}
	return g.TxSink.Prepare(ctx)
}

// killAt makes the n-th passage of a point the last thing this client does.
// last is called just before; nil for nothing.
func (g *gate) killAt(point string, n int, last func()) {
	g.onPoint(func(_ context.Context, p string) error {
		if p == point && g.times(p) == n {
			g.mu.Lock()
			g.ended = true
			g.mu.Unlock()
			if last != nil {
				last()
			}
			panic(crashed{point})
		}
		return nil
	})
}

// survive runs f and reports whether it was killed at a point.
func survive(f func() error) (err error, killed bool) {
	defer func() {
		if p := recover(); p != nil {
			c, ok := p.(crashed)
			if !ok {
				panic(p)
			}
			err, killed = fmt.Errorf("killed at %s", c.point), true
		}
	}()
	return f(), false
}

// freezer stops a call at a point until it is thawed.
type freezer struct {
	reached chan struct{} // closed when the call has come to the point
	thawed  chan struct{} // closed to let it go on
}

// freezeAt stops the n-th passage of a point. The call's own context is not
// looked at: a frozen process does not see it end either.
func (g *gate) freezeAt(point string, n int) *freezer {
	f := &freezer{reached: make(chan struct{}), thawed: make(chan struct{})}
	g.onPoint(func(_ context.Context, p string) error {
		if p == point && g.times(p) == n {
			close(f.reached)
			<-f.thawed
		}
		return nil
	})
	return f
}
