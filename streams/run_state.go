package streams

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/state"
)

// Engine is what keeps the stores in StateDir that name no other with StoreIn. The
// default is goleveldb; package state/pebble is for stores of many millions of keys.
func Engine(e state.Engine) RunOpt { return func(o *runtime.Options) { o.Stores.Engine = e } }

// ReadCache is how many bytes of rows that were read from StateDir are kept in
// memory, for all stores of the process together. The default is 32 MiB; a negative
// number is no cache.
func ReadCache(bytes int) RunOpt { return func(o *runtime.Options) { o.Stores.ReadCache = bytes } }

// CleanUpAfter is for how long StateDir keeps the store of a task that has moved to
// another process, in case it comes back soon. The default is 10 minutes; a negative
// duration is for ever. A store that was removed is rebuilt from its changelog.
func CleanUpAfter(d time.Duration) RunOpt {
	return func(o *runtime.Options) { o.Stores.CleanUpAfter = d }
}

// CleanUp removes all stores of the application from a StateDir, which no process
// may be using: the next start rebuilds them from their changelogs. What the process
// is called in its group stays, so it finds its tasks again.
func (a *App) CleanUp(dir string) error {
	folder, err := state.OpenFolder(filepath.Join(dir, a.id), "")
	if err != nil {
		return fmt.Errorf("application %s: %w", a.id, err)
	}
	_, err = folder.CleanUp(0)
	if err = errors.Join(err, folder.Close()); err != nil {
		return fmt.Errorf("application %s: %w", a.id, err)
	}
	return nil
}
