package replicas

import (
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/core/clock"
)

// parallel is how many partitions are opened or closed at a time. Each waits for the
// disk more than it computes, and syncs that wait together share the file system's
// commits.
const parallel = 16

// inParallel calls fn for each of todo, several at a time, and returns when all are
// done. Under a driver that is one after the other.
func inParallel[T any](c clock.Clock, todo []T, fn func(T)) {
	if clock.Driven(c) != nil {
		for _, one := range todo {
			fn(one)
		}
		return
	}
	var (
		next atomic.Int64
		wg   sync.WaitGroup
	)
	for range min(len(todo), parallel) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(todo)); i = next.Add(1) - 1 {
				fn(todo[i])
			}
		})
	}
	wg.Wait()
}
