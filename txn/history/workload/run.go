package workload

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/txn/history"
)

// readers is how many processes read everything in the end.
const readers = 2

// Run works on the cluster and returns what happened, drain included. When ctx ends the
// load ends early; a second of patience is left to the rest then. An error means that
// nothing could be tried; whatever goes wrong later is in the history.
func Run(ctx context.Context, o Options) ([]history.Event, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	f, err := newField(ctx, o)
	if err != nil {
		return nil, err
	}
	stopProgress := f.report()
	defer stopProgress()
	f.rec.setPhase(Working)

	watcher := &observer{field: f, process: f.rec.process()}
	stop := make(chan struct{})
	var closings, watching, working sync.WaitGroup
	watching.Go(func() { watcher.watch(stop) })
	clients := make([]*client, o.Clients)
	for i := range clients {
		clients[i] = newClient(f, i, &closings)
		working.Go(func() { clients[i].work(stop) })
	}
	over := time.NewTimer(o.Duration)
	select {
	case <-over.C:
	case <-ctx.Done():
		over.Stop()
	}
	close(stop)
	f.wire.heal()
	working.Wait()
	watching.Wait()

	f.finish(watcher, clients)
	closings.Wait()
	cleanup, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	events := f.rec.take()
	if err := f.close(cleanup); err != nil {
		return events, err
	}
	return events, nil
}

// finish lets every client work once more, ends all transactions, reads everything, and
// takes a last look at the watermarks and offsets.
func (f *field) finish(watcher *observer, clients []*client) {
	f.rec.setPhase(Settling)
	failures := make([]error, len(clients)+1+readers)
	limit := time.Now().Add(f.options.Patience)
	var wg sync.WaitGroup
	for i, c := range clients {
		wg.Go(func() {
			if err := c.settle(limit); err != nil {
				failures[i] = fmt.Errorf("client %d could not work within %v: %w", i, f.options.Patience, err)
			}
			c.close()
		})
	}
	wg.Wait()

	f.rec.setPhase(Draining)
	ctx, cancel := context.WithTimeout(context.Background(), f.options.Patience)
	defer cancel()
	ends, err := watcher.quiet(ctx)
	failures[len(clients)] = err
	if err == nil {
		for i := range readers {
			wg.Go(func() { failures[len(clients)+1+i] = f.drain(ctx, ends) })
		}
		wg.Wait()
	}
	e := history.Event{Process: f.rec.process(), Type: history.OK, Kind: history.Drain}
	if err := errors.Join(failures...); err != nil {
		e.Type, e.Note = history.Info, err.Error()
	}
	f.rec.add(e)
	last, cancelLast := context.WithTimeout(context.Background(), patience)
	defer cancelLast()
	// What they find, or that they fail, is in the history.
	_, _ = watcher.marks(last)
	for _, g := range f.groups {
		watcher.committed(last, g)
	}
}

// report calls Options.Progress until it is stopped.
func (f *field) report() (stop func()) {
	if f.options.Progress == nil {
		return func() {}
	}
	tell := func() {
		p := f.rec.progress()
		if f.wire != nil {
			p.Cuts, p.Delays, p.Lates = f.wire.cuts.Load(), f.wire.delays.Load(), f.wire.lates.Load()
		}
		f.options.Progress(p)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				tell()
				return
			case <-tick.C:
				tell()
			}
		}
	})
	return func() { close(done); wg.Wait() }
}
