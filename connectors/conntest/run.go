package conntest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/runner"
)

// runCases drive the sink through the runner on a real cluster.
func runCases() []testCase {
	out := []testCase{
		{name: "run/plain", run: runPlain},
		{name: "run/lost-replies", run: runLostReplies},
		{name: "run/store-down", run: runStoreDown},
		{name: "run/aborted-transactions", run: runAborted},
		{name: "run/rebalance", run: runRebalance},
		{name: "run/zombie-rejoins", run: runZombieRejoins},
		{name: "run/poison", run: runPoison},
		{name: "run/poison-stops", run: runPoisonStops},
		{name: "run/guarantee", run: runGuarantee},
		{name: "run/stop-while-store-hangs", run: runStopHanging},
	}
	for _, p := range append(append([]string{}, openPoints...), commitPoints...) {
		out = append(out, testCase{name: "run/crash/" + p, run: func(e *env) error { return runCrash(e, p) }})
	}
	for _, p := range []string{commitCall, connectors.PointData, connectors.PointPosition, connectors.PointCommitted} {
		out = append(out, testCase{name: "run/zombie/" + p, run: func(e *env) error { return runZombie(e, p) }})
	}
	out = append(out, logCases()...)
	for i := range out {
		out[i].cluster = true
	}
	return out
}

func runPlain(e *env) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	if err := w.produce(100); err != nil {
		return err
	}
	p, err := w.start(nil)
	if err != nil {
		return err
	}
	if err := w.caughtUp(p); err != nil {
		return err
	}
	if err := p.halt(); err != nil {
		return err
	}
	if st := p.run.Status(); st.State != runner.Stopped {
		return fmt.Errorf("state after a clean stop: %s", st.State)
	}
	if err := w.produce(50); err != nil {
		return err
	}
	if p, err = w.start(nil); err != nil {
		return err
	}
	if err := w.caughtUp(p); err != nil {
		return err
	}
	return w.exact()
}

// runCrash kills the process at a point and starts another one.
func runCrash(e *env, point string) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	if err := w.produce(100); err != nil {
		return err
	}
	n := 1
	if point != openCall && point != openReturn && point != connectors.PointFence {
		n += e.rng.IntN(4) // the first commit only stores where to begin
	}
	a, err := w.start(func(p *process, g *gate) { g.killAt(point, n, p.net.cutOff) })
	if err != nil {
		return err
	}
	if err := a.await("the kill at "+point, func(st runner.Status) bool { return st.State == runner.Failed }); err != nil {
		return err
	}
	b, err := w.start(nil)
	if err != nil {
		return err
	}
	if err := w.produce(50); err != nil {
		return err
	}
	if err := w.caughtUp(b); err != nil {
		return err
	}
	return w.exact()
}

// runLostReplies fails calls at random, before and after they take effect.
func runLostReplies(e *env) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	lost := fmt.Errorf("%w: the kit has lost the reply", connectors.ErrUnknownOutcome)
	points := append(append([]string{}, openPoints...), commitPoints...)
	p, err := w.start(func(_ *process, g *gate) {
		g.onPoint(func(_ context.Context, point string) error { // called by one goroutine
			if point == points[e.rng.IntN(len(points))] && e.rng.IntN(2) == 0 {
				return lost
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	for range 10 {
		if err := w.produce(20); err != nil {
			return err
		}
		if err := w.caughtUp(p); err != nil {
			return err
		}
	}
	return w.exact()
}

// runStoreDown: the store does not answer for a while; this shows, and is over
// when it is over.
func runStoreDown(e *env) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	if err := w.produce(50); err != nil {
		return err
	}
	up := make(chan struct{})
	down := fmt.Errorf("%w: the kit has shut the store down", connectors.ErrRetry)
	p, err := w.start(func(_ *process, g *gate) {
		g.onPoint(func(_ context.Context, point string) error {
			select {
			case <-up:
				return nil
			default:
			}
			if point == commitCall && g.times(commitCall) > 2 {
				return down
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	err = p.await("state RETRYING", func(st runner.Status) bool { return st.State == runner.Retrying && st.Tasks[0].Retries > 5 })
	if err != nil {
		return err
	}
	close(up)
	if err := w.caughtUp(p); err != nil {
		return err
	}
	if err := p.await("state RUNNING", func(st runner.Status) bool { return st.State == runner.Running && st.Err == "" }); err != nil {
		return err
	}
	return w.exact()
}

// runZombie freezes a process and cuts it off; another one takes its place and
// goes on; then the first wakes up.
func runZombie(e *env, point string) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	if err := w.produce(60); err != nil {
		return err
	}
	var ice *freezer
	a, err := w.start(func(_ *process, g *gate) { ice = g.freezeAt(point, 2) })
	if err != nil {
		return err
	}
	thawed := false
	defer func() {
		if !thawed {
			close(ice.thawed)
		}
	}()
	select {
	case <-ice.reached:
	case <-e.ctx.Done():
		return fmt.Errorf("no commit came to %s: %w", point, e.ctx.Err())
	}
	a.net.cutOff()
	b, err := w.start(nil)
	if err != nil {
		return err
	}
	if err := w.produce(60); err != nil {
		return err
	}
	if err := w.caughtUp(b); err != nil {
		return fmt.Errorf("the successor, with the old owner frozen at %s: %w", point, err)
	}
	if err := w.exact(); err != nil {
		return fmt.Errorf("before the zombie wakes: %w", err)
	}
	a.net.restore()
	thawed = true
	close(ice.thawed)
	if err := a.end(); !errors.Is(err, connectors.ErrFenced) {
		return fmt.Errorf("the zombie's Run: got error %v, want one that matches: %w", err, connectors.ErrFenced)
	}
	if st := a.run.Status(); st.State != runner.Fenced {
		return fmt.Errorf("state of the zombie: %s, want %s", st.State, runner.Fenced)
	}
	if err := w.produce(20); err != nil {
		return err
	}
	if err := w.caughtUp(b); err != nil {
		return err
	}
	return w.exact()
}

// runZombieRejoins: a process without an instance id is frozen and cut off until
// the group has given its partitions to another one. When it wakes, it lets go
// quietly, and comes back as a new member.
func runZombieRejoins(e *env) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	if err := w.produce(60); err != nil {
		return err
	}
	dynamic := func(o *runner.SinkOptions) { o.Instance, o.SessionTimeout = "", 6*time.Second }
	var ice *freezer
	a, err := w.start(func(_ *process, g *gate) { ice = g.freezeAt(commitCall, 2) }, dynamic)
	if err != nil {
		return err
	}
	thaw := sync.OnceFunc(func() { close(ice.thawed) })
	defer thaw()
	select {
	case <-ice.reached:
	case <-e.ctx.Done():
		return e.ctx.Err()
	}
	a.net.cutOff()
	b, err := w.start(nil, dynamic)
	if err != nil {
		return err
	}
	if err := w.caughtUp(b); err != nil { // after a's session has ended
		return err
	}
	a.net.restore()
	thaw()
	if err := a.await("the zombie's return", func(st runner.Status) bool {
		return st.State == runner.Running && len(st.Tasks[0].Partitions) == 1 && st.Tasks[0].Partitions[0].State == runner.Running
	}); err != nil {
		return err
	}
	if err := w.produce(60); err != nil {
		return err
	}
	if err := w.caughtUp(a, b); err != nil {
		return err
	}
	return w.exact()
}

func runAborted(e *env) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	p, err := w.start(nil)
	if err != nil {
		return err
	}
	for range 6 {
		if err := w.transaction(1+e.rng.IntN(20), e.rng.IntN(2) == 0); err != nil {
			return fmt.Errorf("transaction: %w", err)
		}
	}
	if err := w.transaction(5, false); err != nil {
		return fmt.Errorf("transaction: %w", err)
	}
	// Also over the marker of the aborted transaction at the end.
	if err := w.caughtUp(p); err != nil {
		return err
	}
	return w.exact()
}

// runRebalance lets processes with several tasks come and go.
func runRebalance(e *env) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	dynamic := func(tasks int) func(*runner.SinkOptions) {
		return func(o *runner.SinkOptions) { o.Instance, o.Tasks = "", tasks }
	}
	a, err := w.start(nil, dynamic(1))
	if err != nil {
		return err
	}
	for range 2 {
		if err := w.produce(40); err != nil {
			return err
		}
		b, err := w.start(nil, dynamic(2))
		if err != nil {
			return err
		}
		if err := w.produce(40); err != nil {
			return err
		}
		if err := w.caughtUp(a, b); err != nil {
			return err
		}
		if err := b.halt(); err != nil {
			return err
		}
		if err := w.produce(40); err != nil {
			return err
		}
		if err := w.caughtUp(a); err != nil {
			return err
		}
	}
	return w.exact()
}

// runPoison: bad records first, in the middle, last, and nothing but bad ones;
// each ends among the rejects once.
func runPoison(e *env) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	bad := []string{"not json at all", `{"id":`}
	if e.kit.Poison != nil {
		bad = append(bad, string(e.kit.Poison))
	}
	for _, good := range []int{0, 30, 30, 0} {
		if err := w.produce(good); err != nil {
			return err
		}
		for _, value := range bad {
			if err := w.produceBad(value); err != nil {
				return err
			}
		}
	}
	p, err := w.start(nil)
	if err != nil {
		return err
	}
	if !p.run.Guarantee().Class.Valid() {
		return fmt.Errorf("class %s", p.run.Guarantee().Class)
	}
	if err := w.caughtUp(p); err != nil {
		return err
	}
	return w.exact()
}

// runPoisonStops: told to stop at a bad record, the connector names it.
func runPoisonStops(e *env) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	if err := w.produce(10); err != nil {
		return err
	}
	if err := w.produceBad("not json at all"); err != nil {
		return err
	}
	p, err := w.start(nil, func(o *runner.SinkOptions) { o.StopOnReject = true })
	if err != nil {
		return err
	}
	err = p.end()
	if err == nil {
		return errors.New("the end of Run brought no error")
	}
	bad, ok := errors.AsType[*runner.RecordError](err)
	if !ok || (Ref{bad.TP.Topic, bad.TP.Partition, bad.Offset}) != w.reject[0] {
		return fmt.Errorf("the error does not name record %v: %w", w.reject[0], err)
	}
	return w.rejected()
}

// runGuarantee: what weakens is refused, and shown when it is accepted.
func runGuarantee(e *env) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	dirty := func(allow bool) func(*runner.SinkOptions) {
		return func(o *runner.SinkOptions) {
			o.AllowWeaker, o.Isolation = allow, connectors.ReadUncommitted
		}
	}
	if _, err := w.start(nil, dirty(false)); !errors.Is(err, connectors.ErrConfig) {
		return fmt.Errorf("read_uncommitted without AllowWeaker: got error %v, want one that matches: %w", err, connectors.ErrConfig)
	}
	p, err := w.start(nil, dirty(true))
	if err != nil {
		return err
	}
	if g := p.run.Guarantee(); g.Guarantee != connectors.AtLeastOnce || len(g.Because) == 0 {
		return fmt.Errorf("read_uncommitted states %s", g)
	}
	return p.halt()
}

// runStopHanging: a stop does not wait longer than its deadline for a store
// that does not answer.
func runStopHanging(e *env) error {
	w, err := newWorld(e)
	if err != nil {
		return err
	}
	if err := w.produce(10); err != nil {
		return err
	}
	hanging := make(chan struct{})
	p, err := w.start(func(_ *process, g *gate) {
		g.onPoint(func(ctx context.Context, point string) error {
			if point == commitCall && g.times(point) == 2 {
				close(hanging)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
	}, func(o *runner.SinkOptions) { o.StopTimeout, o.CallTimeout = 200*time.Millisecond, time.Hour })
	if err != nil {
		return err
	}
	select {
	case <-hanging:
	case <-e.ctx.Done():
		return e.ctx.Err()
	}
	p.stop()
	if err := p.end(); errors.Is(err, context.DeadlineExceeded) && e.ctx.Err() != nil {
		return err
	}
	return nil
}
