package coordinator

// model is a second, dumb implementation of version 2 for one transactional id. It
// thinks in credentials that clients were handed, not in epochs and states, and it
// knows nothing of logs, waits or restarts: those must not show.
type model struct {
	known bool
	// owner is what the rightful producer has now.
	owner creds
	// before is what it had before the last step that raised the epoch; it may come
	// back with it as long as nothing was done since.
	before *creds
	// last is how the last transaction ended, none after an InitProducerId.
	last outcome
	open map[TopicPartition]bool
}

type creds struct {
	pid   int64
	epoch int16
}

type outcome int

const (
	noOutcome outcome = iota
	committed
	abortedByClient
	abortedByTimeout
)

// usable says that a producer may write with c.
func (c creds) usable() bool { return c.epoch <= maxDataEpoch }

// next is what a client has after the end of a transaction; rotated says that it
// needs a new producer id.
func (c creds) next() (n creds, rotated bool) {
	if c.epoch >= maxDataEpoch {
		return creds{}, true
	}
	return creds{c.pid, c.epoch + 1}, false
}

// add is the answer to an implicit AddPartitions.
func (m *model) add(c creds, tps []TopicPartition) int16 {
	switch {
	case !m.known || c.pid != m.owner.pid:
		return CodeInvalidProducerIDMap
	case m.last == abortedByTimeout && c == *m.before:
		return CodeTransactionAbortable
	case c != m.owner || !c.usable():
		return CodeProducerFenced
	}
	if m.open == nil {
		m.open = map[TopicPartition]bool{}
	}
	for _, tp := range tps {
		m.open[tp] = true
	}
	m.before, m.last = nil, noOutcome
	return CodeNone
}

// end is the answer to EndTxn; decides says that it carries markers to m.open.
func (m *model) end(c creds, commit bool) (code int16, decides bool) {
	mine := m.before != nil && *m.before == c
	switch {
	case !m.known || c.pid != m.owner.pid && !mine:
		return CodeInvalidProducerIDMap, false
	case c == m.owner && c.usable() && m.open != nil:
		return CodeNone, true
	case c == m.owner && c.usable() && commit:
		return CodeInvalidTxnState, false
	case c == m.owner && c.usable():
		return CodeNone, false
	case !mine || m.last == noOutcome:
		if c.pid != m.owner.pid {
			// The id rotated and nothing was open since: only a repeat is told more.
			return CodeInvalidProducerIDMap, false
		}
		return CodeProducerFenced, false
	case commit && m.last == committed, !commit && m.last != committed:
		return CodeNone, false
	case commit && m.last == abortedByTimeout:
		return CodeTransactionAbortable, false
	default:
		return CodeInvalidTxnState, false
	}
}

// ended moves on after an EndTxn that did something, with what the client got.
func (m *model) ended(c creds, commit bool, got creds) {
	m.before, m.owner, m.open = &c, got, nil
	m.last = abortedByClient
	if commit {
		m.last = committed
	}
}

// timeout moves on after the coordinator's abort.
func (m *model) timeout() {
	c := m.owner
	m.before, m.open, m.last = &c, nil, abortedByTimeout
	m.owner = creds{c.pid, c.epoch + 1}
}

// mayInit says whether InitProducerId is taken.
func (m *model) mayInit(c *creds) bool {
	switch {
	case c == nil, !m.known, *c == m.owner:
		return true
	default:
		return m.open == nil && m.before != nil && *m.before == *c
	}
}

// sameAgain says that InitProducerId gives what the client was given already.
func (m *model) sameAgain(c *creds) bool {
	return m.known && c != nil && *c != m.owner && m.owner.usable()
}

// inited moves on after an InitProducerId.
func (m *model) inited(c *creds, got creds) {
	same := m.sameAgain(c)
	m.open, m.last = nil, noOutcome
	switch {
	case same:
	case c == nil || !m.known:
		m.before = nil
	default:
		b := *c
		m.before = &b
	}
	m.known, m.owner = true, got
}
