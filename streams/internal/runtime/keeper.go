package runtime

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/streams/internal/restore"
)

// keeper has the stores of a worker on which no task runs: those that are being
// restored for one, and copies of stores whose tasks run elsewhere. It works on a
// goroutine of its own, so that the worker's tasks go on, and commit, whatever a
// restore takes.
//
// A store belongs either to a task, which is to say to the worker's goroutine, or to
// the keeper's. It comes to the keeper closed, from a task that has ended in order or
// as it was; so what a copy begins with is an image, which holds nothing uncommitted
// by construction. It goes to a task when its restore is done. A copy that is
// promoted goes the same way: it is restored, from where it is.
type keeper struct {
	parts     takeover // of each that it makes
	set       *restore.Set
	log       *slog.Logger
	onRestore func(Restored)
	worker    int

	ctx      context.Context
	cancel   context.CancelFunc
	commands chan func() // run on the keeper's goroutine
	steps    sync.WaitGroup
	done     chan struct{}
	flush    bool // at the end; written before cancel

	// Owned by the keeper's goroutine.
	kept   map[taskID]*kept
	active map[taskID]int64 // wanted by the worker, by the number of the wish
	copies map[taskID]bool
	// delivered are the wishes that have been answered.
	delivered map[taskID]int64

	mu      sync.Mutex
	serial  int64
	since   map[taskID]int64 // tasks that the worker waits for, each with a number of that wish
	warm    map[int32]bool   // units whose copies it wants to hear of when they are close
	close   int64
	isWarm  bool
	results []result
	ready   chan struct{}   // capacity 1: there are results, or a copy is close
	lags    map[int32]int64 // by unit, of what is open here
}

// result is a task whose stores are complete, or why they are not.
type result struct {
	id       taskID
	since    int64
	takeover *takeover
	err      error
}

// kept is one task's stores at the keeper.
type kept struct {
	takeover *takeover
	since    int64 // the wish that it is restored for; 0 for a copy
	busy     bool  // a step has the take-over; until it ends, nobody else touches it
	stop     context.CancelFunc
	began    time.Time
	logged   time.Time
	rest     time.Time // after a failure: not before
	failures int
}

// newKeeper starts a keeper with nothing to keep. parts is what all take-overs have in
// common.
func newKeeper(parts takeover, worker int, onRestore func(Restored)) *keeper {
	k := &keeper{
		parts: parts, set: restore.NewSet(parts.cluster), log: parts.log, worker: worker, onRestore: onRestore,
		commands: make(chan func(), 64), done: make(chan struct{}), ready: make(chan struct{}, 1),
		kept: map[taskID]*kept{}, since: map[taskID]int64{}, delivered: map[taskID]int64{}, lags: map[int32]int64{},
	}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	go k.run()
	return k
}

// want says which tasks the worker waits for and which it wants copies of; it is told
// once when all copies of one of the warm units lack no more than so many records.
// What is in neither list is closed, and results of former wishes are forgotten.
func (k *keeper) want(active, copies []taskID, warm []int32, close int64) {
	k.mu.Lock()
	since := map[taskID]int64{}
	for _, id := range active {
		if since[id] = k.since[id]; since[id] == 0 {
			k.serial++
			since[id] = k.serial
		}
	}
	k.since, k.close, k.isWarm, k.warm = since, close, false, map[int32]bool{}
	for _, u := range warm {
		k.warm[u] = true
	}
	k.results = slices.DeleteFunc(k.results, func(r result) bool {
		if r.since == since[r.id] {
			return false
		}
		k.discard(r)
		return true
	})
	k.mu.Unlock()
	wanted := map[taskID]bool{}
	for _, id := range copies {
		wanted[id] = since[id] == 0
	}
	wishes := maps.Clone(since)
	k.command(func() {
		maps.DeleteFunc(k.delivered, func(id taskID, n int64) bool { return wishes[id] != n })
		maps.DeleteFunc(wishes, func(id taskID, n int64) bool { return k.delivered[id] == n })
		k.active, k.copies = wishes, wanted
		k.reconcile()
	})
}

// forget makes the next want begin anew with everything: others may have had the
// tasks meanwhile.
func (k *keeper) forget() { k.want(nil, nil, nil, 0) }

// take returns what is ready, and whether a copy that the worker waits for is close.
// The worker owns the stores of results without an error.
func (k *keeper) take() (done []result, warm bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	done, warm = k.results, k.isWarm
	k.results, k.isWarm = nil, false
	for _, r := range done {
		delete(k.since, r.id)
	}
	return done, warm
}

// lag tells what each unit that is open here lacks.
func (k *keeper) lag() map[int32]int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lags
}

// end closes everything. Without flush, as it is.
func (k *keeper) end(flush bool) {
	k.flush = flush
	k.cancel()
	<-k.done
}

// command runs f on the keeper's goroutine, soon.
func (k *keeper) command(f func()) {
	select {
	case k.commands <- f:
	case <-k.ctx.Done():
	}
}

// discard closes the stores of a result that nobody waits for any more. They are
// complete and written.
func (k *keeper) discard(r result) {
	if r.takeover == nil {
		return
	}
	if err := r.takeover.close(); err != nil {
		k.log.Warn("close stores", "error", err)
	}
}

// reportEvery is how often a restore that goes on is told of; boundEvery is how often
// it is asked how far copies of source topics may go.
const (
	reportEvery = time.Second
	boundEvery  = time.Second
)

func (k *keeper) run() {
	defer close(k.done)
	report, bound := time.NewTicker(reportEvery), time.NewTicker(boundEvery)
	defer report.Stop()
	defer bound.Stop()
	now := make(chan struct{})
	close(now)
	for {
		arrived := k.set.Arrived()
		if k.set.Step() {
			arrived = now
		}
		k.look()
		select {
		case <-k.ctx.Done():
			k.letGo()
			return
		case f := <-k.commands:
			f()
		case <-report.C:
			k.report()
			k.reconcile() // what failed is tried again
		case <-bound.C:
			k.askBounds()
		case <-arrived:
		}
	}
}
