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
	// began is what the owner had when it began the open transaction; kept says that it
	// has other credentials now and the transaction waits for its decision.
	began creds
	kept  bool
	// twoPhase says that the transactions have no timeout, after says it of those behind
	// the open one.
	twoPhase, after bool
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
	case !m.knows(c):
		return CodeInvalidProducerIDMap
	case m.kept && c == m.owner:
		return CodeInvalidTxnState
	case m.last == abortedByTimeout && c == *m.before:
		return CodeTransactionAbortable
	case c != m.owner || !c.usable():
		return CodeProducerFenced
	}
	if m.open == nil {
		m.open, m.began = map[TopicPartition]bool{}, c
	}
	for _, tp := range tps {
		m.open[tp] = true
	}
	m.before, m.last = nil, noOutcome
	return CodeNone
}

// knows says whether the producer id is one of the id's own.
func (m *model) knows(c creds) bool {
	return m.known && (c.pid == m.owner.pid || m.open != nil && c.pid == m.began.pid)
}

// end is the answer to EndTxn; decides says that it carries markers to m.open.
func (m *model) end(c creds, commit bool) (code int16, decides bool) {
	mine := m.before != nil && *m.before == c
	switch {
	case !m.knows(c) && (!mine || m.open != nil):
		return CodeInvalidProducerIDMap, false
	case c == m.owner && c.usable() && m.open != nil:
		return CodeNone, true
	case c == m.owner && c.usable() && commit:
		return CodeInvalidTxnState, false
	case c == m.owner && c.usable():
		return CodeNone, false
	case !mine || m.last == noOutcome:
		if !m.knows(c) {
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
	m.before, m.owner = &c, got
	m.close()
	m.last = abortedByClient
	if commit {
		m.last = committed
	}
}

// timeout moves on after the coordinator's abort.
func (m *model) timeout() {
	c := m.owner
	m.before, m.last = &c, abortedByTimeout
	m.owner = creds{c.pid, c.epoch + 1}
	m.close()
}

// close ends the open transaction.
func (m *model) close() {
	if m.kept {
		m.twoPhase = m.after
	}
	m.open, m.kept = nil, false
}

// mayInit says whether InitProducerId is taken.
func (m *model) mayInit(c *creds, keep bool) bool {
	switch {
	case c == nil, !m.known, *c == m.owner:
		return true
	case m.open != nil && !(keep && m.kept):
		return false
	default:
		return m.before != nil && *m.before == *c
	}
}

// sameAgain says that InitProducerId gives what the client was given already.
func (m *model) sameAgain(c *creds) bool {
	return m.known && c != nil && *c != m.owner && m.owner.usable()
}

// inited moves on after an InitProducerId.
func (m *model) inited(c *creds, keep, twoPhase bool, got creds) {
	same := m.sameAgain(c)
	if keep && m.open != nil {
		m.kept, m.twoPhase, m.after = true, m.twoPhase || twoPhase, twoPhase
	} else {
		m.close()
		m.twoPhase = twoPhase
	}
	m.last = noOutcome
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
