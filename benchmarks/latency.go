package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// latencies are durations of single operations.
type latencies []time.Duration

// at returns the quantile q in milliseconds.
func (l latencies) at(q float64) float64 {
	if len(l) == 0 {
		return 0
	}
	slices.Sort(l)
	return milliseconds(l[min(len(l)-1, int(q*float64(len(l))))])
}

// eachClient runs f in that many goroutines; once runs one operation, records its latency and says whether to go on.
// It returns operations per second.
func eachClient(ctx context.Context, e *env, clients int, f func(ctx context.Context, i int, once func(func() error) bool) error) (float64, latencies, error) {
	ctx, cancel := context.WithTimeout(ctx, e.seconds+time.Minute)
	defer cancel()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		all  latencies
		errs []error
	)
	began := time.Now()
	for i := range clients {
		wg.Go(func() {
			var own latencies
			var opErr error
			once := func(op func() error) bool {
				t := time.Now()
				if opErr = op(); opErr != nil {
					return false
				}
				own = append(own, time.Since(t))
				return time.Since(began) < e.seconds
			}
			err := f(ctx, i, once)
			if err == nil {
				err = opErr
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if len(errs) > 0 {
		return 0, nil, errs[0]
	}
	return float64(len(all)) / took.Seconds(), all, nil
}
