package main

import (
	"slices"
	"time"
)

// latencies are durations of single operations.
type latencies []time.Duration

// at returns the quantile q, rounded for a table.
func (l latencies) at(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	slices.Sort(l)
	return l[min(len(l)-1, int(q*float64(len(l))))].Round(10 * time.Microsecond)
}
