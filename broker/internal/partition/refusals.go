package partition

// refusals remembers that the disk refuses writes, so that the log says once when that
// begins and once when it is over, however many requests come meanwhile. The append
// lock owns it.
type refusals struct {
	any    bool
	size   int   // bytes of the smallest batch that was refused
	lastMs int64 // when the last one was
}

// refusalPauseMs is how long nothing may have been refused for a small batch to tell
// that there is room again. A batch that fits into the rest of a block proves nothing
// about larger ones.
const refusalPauseMs = 60_000

// refused notes a refusal; true for the first.
func (r *refusals) refused(size int, nowMs int64) (first bool) {
	first = !r.any
	if first || size < r.size {
		r.size = size
	}
	r.any, r.lastMs = true, nowMs
	return first
}

// over tells whether a batch of this size that was written ends the refusals.
func (r *refusals) over(size int, nowMs int64) bool {
	if size < r.size && nowMs-r.lastMs < refusalPauseMs {
		return false
	}
	*r = refusals{}
	return true
}
