package state

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// StoreOptions say how a folder keeps its stores. The zero value works.
type StoreOptions struct {
	// Engine is that of all stores not named in Engines. Default goleveldb.
	Engine Engine

	// Engines are engines of single stores, by name.
	Engines map[string]Engine

	// ReadCache is in front of all stores on disk. Nil is none.
	ReadCache *ReadCache

	// Logger gets what is rebuilt, and why. Default none.
	Logger *slog.Logger
}

// stores are the stores of a folder. They are safe for concurrent use.
type stores struct {
	dir string

	mu      sync.Mutex
	options StoreOptions
	held    map[string]chan struct{} // in use; closed when free again
	free    map[string]time.Time     // since when those that were in use are free
	born    time.Time                // since when the others are, as far as is known
}

func newStores(dir string) stores {
	return stores{dir: dir, held: map[string]chan struct{}{}, free: map[string]time.Time{}, born: time.Now(),
		options: StoreOptions{Engine: GoLevelDB(), Logger: slog.New(slog.DiscardHandler)}}
}

// Configure sets how stores are kept, before the first is opened.
func (f *Folder) Configure(o StoreOptions) {
	f.stores.mu.Lock()
	defer f.stores.mu.Unlock()
	if o.Engine == nil {
		o.Engine = GoLevelDB()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f.stores.options = o
}

// OpenStore opens the store of one task, and waits while another task of this
// process has not let go of it yet. A store that is damaged, or was left by another
// engine, is removed and comes back empty: the changelog has it all. The caller
// closes the image; release must be called after that.
//
// The folder of a task is that of its goleveldb, which was there first; any other
// engine has a folder of its name in it. So what belongs to whom is seen by the
// names, at any moment of a removal that a crash cuts short.
func (f *Folder) OpenStore(ctx context.Context, name string, task int32) (img Image, release func(), err error) {
	s := &f.stores
	dir := filepath.Join(s.dir, url.PathEscape(name), strconv.Itoa(int(task)))
	if release, err = s.hold(ctx, dir); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	o := s.options
	s.mu.Unlock()
	engine := o.Engine
	if e := o.Engines[name]; e != nil {
		engine = e
	}
	if img, err = open(engine, dir, o.Logger.With("store", name, "task", task)); err != nil {
		release()
		return nil, nil, err
	}
	if engine.Durable() && o.ReadCache != nil {
		img = o.ReadCache.Over(img)
	}
	return img, release, nil
}

// open opens one store with its engine.
func open(engine Engine, dir string, log *slog.Logger) (Image, error) {
	if !engine.Durable() {
		return engine.Open("")
	}
	if err := evict(engine, dir, log); err != nil {
		return nil, err
	}
	if engine.Name() != GoLevelDB().Name() {
		dir = filepath.Join(dir, engine.Name())
	}
	img, err := engine.Open(dir)
	if !errors.Is(err, ErrCorrupt) {
		return img, err
	}
	log.Error("the store is damaged and is rebuilt from its changelog", "engine", engine.Name(), "error", err)
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("state: remove store %s: %w", dir, err)
	}
	return engine.Open(dir)
}

// evict removes what another engine has left in the folder of a task.
func evict(engine Engine, dir string, log *slog.Logger) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	others := map[string]bool{}
	var names []string
	for _, e := range entries {
		owner := GoLevelDB().Name()
		if e.IsDir() {
			owner = e.Name()
		}
		if owner != engine.Name() {
			others[owner] = true
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil
	}
	log.Warn("the store was kept by another engine and is rebuilt from its changelog",
		"engine", engine.Name(), "found", slices.Sorted(maps.Keys(others)))
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("state: remove store %s: %w", dir, err)
		}
	}
	return nil
}

// hold takes a store's folder for one task.
func (s *stores) hold(ctx context.Context, dir string) (release func(), err error) {
	for {
		release, busy := s.tryHold(dir)
		if busy == nil {
			return release, nil
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, fmt.Errorf("state: store %s is in use: %w", dir, ctx.Err())
		}
	}
}

// tryHold takes a store's folder, or says what ends the use of it.
func (s *stores) tryHold(dir string) (release func(), busy <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if busy, ok := s.held[dir]; ok {
		return nil, busy
	}
	free := make(chan struct{})
	s.held[dir] = free
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.held, dir)
		s.free[dir] = time.Now()
		close(free)
	}, nil
}

// Stores lists the tasks that have a store of this name here.
func (f *Folder) Stores(name string) ([]int32, error) {
	entries, err := list(filepath.Join(f.stores.dir, url.PathEscape(name)))
	if err != nil {
		return nil, err
	}
	var tasks []int32
	for _, e := range entries {
		if n, err := strconv.ParseInt(e, 10, 32); err == nil {
			tasks = append(tasks, int32(n))
		}
	}
	return tasks, nil
}

// list are the names in a folder, none when there is no folder.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("state: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// Removed is a store that a clean-up has removed.
type Removed struct {
	Store string
	Task  string
}

// CleanUp removes the stores that nobody in this process has had open for a time: of
// tasks that have moved away, of stores that the application has no more. Should one
// come back, it is rebuilt from its changelog. Stores that were not used since the
// folder was opened count from then.
func (f *Folder) CleanUp(unused time.Duration) ([]Removed, error) {
	s := &f.stores
	names, err := list(s.dir)
	if err != nil {
		return nil, err
	}
	var removed []Removed
	for _, name := range names {
		tasks, err := list(filepath.Join(s.dir, name))
		if err != nil {
			return removed, err
		}
		store, err := url.PathUnescape(name)
		if err != nil {
			continue // not ours
		}
		for _, task := range tasks {
			gone, err := s.remove(filepath.Join(s.dir, name, task), unused)
			if err != nil {
				return removed, err
			}
			if gone {
				removed = append(removed, Removed{store, task})
			}
		}
	}
	return removed, nil
}

// remove removes the folder of one task, if it is free for long enough.
func (s *stores) remove(dir string, unused time.Duration) (gone bool, err error) {
	s.mu.Lock()
	since, ok := s.free[dir]
	if !ok {
		since = s.born
	}
	s.mu.Unlock()
	if time.Since(since) < unused {
		return false, nil
	}
	release, busy := s.tryHold(dir)
	if busy != nil {
		return false, nil
	}
	defer release()
	if err := os.RemoveAll(dir); err != nil {
		return false, fmt.Errorf("state: clean up: %w", err)
	}
	return true, nil
}
