package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/streams/state"
)

// StoresOptions say how a process keeps the stores of its tasks in its folder. The
// zero value works.
type StoresOptions struct {
	// Engine is that of stores that name none. Default goleveldb.
	Engine state.Engine
	// ReadCache is how many bytes of rows that were read from disk are kept in
	// memory, for all stores together. Default 32 MiB, negative for none.
	ReadCache int
	// CleanUpAfter is for how long a store of a task that has moved away is kept.
	// Default 10 minutes, negative for ever.
	CleanUpAfter time.Duration
}

const (
	defaultReadCache    = 32 << 20
	defaultCleanUpAfter = 10 * time.Minute
)

// Validate names the field that is out of its limits.
func (o StoresOptions) Validate() error {
	if o.ReadCache > 0 {
		if _, err := state.NewReadCache(o.ReadCache); err != nil {
			return fmt.Errorf("streams: Stores.ReadCache: %w", err)
		}
	}
	return nil
}

// configure tells the folder how the application's stores are kept.
func (r *run) configure() error {
	o := r.options.Stores
	keep := state.StoreOptions{Engine: o.Engine, Engines: map[string]state.Engine{}, Logger: r.log.With("app", r.app.AppID)}
	for i := range r.app.Subs {
		for _, s := range r.app.Subs[i].Stores {
			if s.Engine != nil {
				keep.Engines[s.Name] = s.Engine
			}
		}
	}
	if o.ReadCache == 0 {
		o.ReadCache = defaultReadCache
	}
	if o.ReadCache > 0 {
		cache, err := state.NewReadCache(o.ReadCache)
		if err != nil {
			return err
		}
		keep.ReadCache = cache
	}
	r.folder.Configure(keep)
	return nil
}

// cleanUp removes stores that nobody has used for a time, now and then until ctx
// ends. It closes done.
func (r *run) cleanUp(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	after := r.options.Stores.CleanUpAfter
	if after == 0 {
		after = defaultCleanUpAfter
	}
	if r.folder == nil || after < 0 {
		return
	}
	every := time.NewTicker(max(after/4, 10*time.Millisecond))
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		removed, err := r.folder.CleanUp(after)
		for _, s := range removed {
			r.log.Info("the store of a task that is elsewhere is removed", "app", r.app.AppID, "store", s.Store, "task", s.Task, "unused for", after)
		}
		if err != nil {
			r.log.Warn("clean-up of stores", "app", r.app.AppID, "error", err)
		}
	}
}
