package coordinator

import "slices"

// A request of the next transaction that comes while the last one is being
// completed waits here instead of being sent away with CONCURRENT_TRANSACTIONS,
// so that a client which goes on at once loses no time to a back-off. The wait is
// bounded in time and number, for a partition that can not take its marker may
// hold up a completion for long.
const (
	// parkMs is how long a request waits at most.
	parkMs = 1000
	// parkedMax is how many requests wait for one transactional id at most.
	parkedMax = 64
)

// park lets a request wait for the completion of t. busy is its answer if it can
// not.
func (m *Machine) park(t *transaction, nowMs int64, to Token, request, busy any) Output {
	if len(t.parked) >= parkedMax {
		return refuse(to, busy)
	}
	t.parked = append(t.parked, parked{to: to, untilMs: nowMs + parkMs, request: request})
	m.schedule(t)
	return Output{}
}

// busy is the answer to a request that waited for too long.
func (p parked) busy() any {
	switch r := p.request.(type) {
	case InitRequest:
		return r.refused(CodeConcurrentTransactions)
	case AddRequest:
		return r.all(CodeConcurrentTransactions)
	default:
		return endRefused(CodeConcurrentTransactions)
	}
}

// Resume lets one parked request go on whose wait has ended; ok is false when there
// is none. The caller asks again after the output was replayed or given up.
func (m *Machine) Resume(nowMs int64) (out Output, ok bool) {
	for len(m.resumable) > 0 {
		t := m.ids[m.resumable[0]]
		// A request that went on may have led to the next decision; the rest waits
		// for that one, which makes the id resumable again.
		if t == nil || len(t.parked) == 0 || t.state.deciding() {
			m.resumable = m.resumable[1:]
			continue
		}
		p := t.parked[0]
		t.parked[0] = parked{}
		t.parked = t.parked[1:]
		m.schedule(t)
		if len(t.parked) == 0 && t.state == Dead {
			m.forget(t.id)
		}
		switch r := p.request.(type) {
		case InitRequest:
			return m.InitProducerID(nowMs, p.to, r), true
		case AddRequest:
			return m.AddPartitions(nowMs, p.to, r), true
		case EndRequest:
			return m.EndTxn(nowMs, p.to, r), true
		}
	}
	return Output{}, false
}

// expire answers the parked requests of t whose time is over.
func (m *Machine) expire(t *transaction, nowMs int64, out *Output) {
	for len(t.parked) > 0 && t.parked[0].untilMs <= nowMs {
		p := t.parked[0]
		t.parked[0] = parked{}
		t.parked = t.parked[1:]
		out.Replies = append(out.Replies, Reply{To: p.to, Response: p.busy()})
	}
}

// Forget drops a parked request whose caller was told that an append failed, so that
// it is not carried out later behind its caller's back.
func (m *Machine) Forget(to Token) {
	for _, id := range m.sorted() {
		t := m.ids[id]
		n := len(t.parked)
		t.parked = slices.DeleteFunc(t.parked, func(p parked) bool { return p.to == to })
		if len(t.parked) != n {
			m.schedule(t)
		}
	}
}
