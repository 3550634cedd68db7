package pebble

import (
	"runtime"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// caches are what the stores of a process share: the blocks of their tables in
// memory, and the files that they hold open.
type caches struct {
	blocks *pebble.Cache
	files  *pebble.FileCache
	stores int
}

// shared holds the caches in use, by size: engines of equal options share them,
// whoever made them. They are freed with the last store.
var shared struct {
	mu sync.Mutex
	by map[Options]*caches
}

// take gives one more store its share of the caches.
func take(o Options) *caches {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	c := shared.by[o]
	if c == nil {
		c = &caches{blocks: pebble.NewCache(int64(o.CacheBytes)), files: pebble.NewFileCache(runtime.GOMAXPROCS(0), o.OpenFiles)}
		if shared.by == nil {
			shared.by = map[Options]*caches{}
		}
		shared.by[o] = c
	}
	c.stores++
	return c
}

// give takes the share back.
func give(o Options) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	c := shared.by[o]
	if c.stores--; c.stores > 0 {
		return
	}
	delete(shared.by, o)
	c.files.Unref()
	c.blocks.Unref()
}
