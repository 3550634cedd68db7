package session

// hold is what a reader has in memory, for all its feeds together: answers that wait,
// those that are being read, and what fetches on their way may bring. The reader's lock
// guards it.
//
// It stays below the limit, but for two things. A broker always answers with a batch,
// however large, so each may go beyond by one. And whoever waits for one feed while
// others have filled the memory must not wait for ever: a feed that is empty and wanted
// gets one batch.
type hold struct {
	limit    int
	waiting  int // in queues
	reading  int // taken by feeds and not read to the end
	promised int // by fetches on their way
	peak     int
}

func (h *hold) bytes() int { return h.waiting + h.reading }

// room is how much a fetch of one of n brokers may bring; 0 is none.
func (h *hold) room(n int) int { return max(0, h.limit-h.bytes()-h.promised) / max(n, 1) }

// full reports that nothing more is to be fetched for feeds that have something.
func (h *hold) full() bool { return h.bytes()+h.promised >= h.limit }

func (h *hold) add(n int) {
	h.waiting += n
	h.peak = max(h.peak, h.bytes())
}

// Buffered is how many bytes of fetched batches the reader holds, and the most that it
// ever held.
func (r *Reader) Buffered() (now, peak int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hold.bytes(), r.hold.peak
}

// Want says that the owner cannot go on without a feed that has nothing for him: it
// gets its next batch even if others have filled the memory.
func (r *Reader) Want(f *Feed) {
	if f.chunks.Load() > 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !f.wanted && !f.removed && r.hold.full() {
		f.wanted = true
		r.kickLocked()
	}
}

// Full reports that the memory is filled, so that Want is of use.
func (r *Reader) Full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hold.full()
}
