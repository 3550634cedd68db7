package runtime

import "slices"

// HistogramBounds are the upper bounds of a Histogram's buckets in seconds; one
// more bucket takes what is above all of them.
var HistogramBounds = [...]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 3600}

// Histogram counts durations in buckets. The zero value is empty.
type Histogram struct {
	Buckets [len(HistogramBounds) + 1]int64 `json:"-"`
	Count   int64                           `json:"count"`
	Sum     float64                         `json:"sum"` // seconds
}

// add counts n durations.
func (h *Histogram) add(seconds float64, n int64) {
	at, _ := slices.BinarySearch(HistogramBounds[:], seconds)
	h.Buckets[at] += n
	h.Count += n
	h.Sum += seconds * float64(n)
}

// Merge adds what another one has counted.
func (h *Histogram) Merge(other Histogram) {
	for i, n := range other.Buckets {
		h.Buckets[i] += n
	}
	h.Count += other.Count
	h.Sum += other.Sum
}

// Quantile is a bound in seconds that the share q of the durations does not
// exceed: the upper one of its bucket, or of the last one. 0 if there are none.
func (h *Histogram) Quantile(q float64) float64 {
	var n int64
	for i, b := range h.Buckets {
		if n += b; h.Count > 0 && float64(n) >= q*float64(h.Count) {
			return HistogramBounds[min(i, len(HistogramBounds)-1)]
		}
	}
	return 0
}
