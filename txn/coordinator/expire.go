package coordinator

// An id at rest that nobody used for long is forgotten: its tombstone goes to the log. Whoever comes back with it gets a new
// producer id from InitProducerId, and everything else is refused, so an old owner can do no harm.

const (
	// expireMax bounds how many ids one Tick forgets, expireMaxBytes the keys of their tombstones: the records of a Tick go
	// into one batch.
	expireMax      = 4096
	expireMaxBytes = 256 << 10
)

// expiry is when an id at rest is forgotten. Sweeps are an interval apart, so that ids that were left on the same day go with
// one append, not each with its own.
func (m *Machine) expiry(t *transaction) (ms int64, ok bool) {
	if t.state != Empty && !t.state.complete() {
		return 0, false
	}
	ms = max(t.updateMs, 0) + m.expirationMs
	return (ms + m.sweepMs - 1) / m.sweepMs * m.sweepMs, true
}

// tombstone forgets an id, once it is replayed.
func tombstone(id string) Record { return Record{Key: encodeKey(id)} }
