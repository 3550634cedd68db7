package coordinator

import "slices"

// A transaction of a two-phase commit has no timeout, and until it is decided no
// read_committed consumer gets past it. So somebody must hear of one that stays open
// for long.

// track keeps the list of undecided transactions, after t has changed.
func (m *Machine) track(t *transaction) {
	if !t.twoPhase() {
		delete(m.undecided, t.id)
		t.noticeMs = 0
		return
	}
	m.undecided[t.id] = t
	if t.noticeMs == 0 {
		t.noticeMs = t.startMs + m.noticeMs
	}
}

// notice is when Tick has to tell of t next.
func (m *Machine) notice(t *transaction) (ms int64, ok bool) { return t.noticeMs, t.twoPhase() }

// noticed makes the notice, and puts the next one off.
func (m *Machine) noticed(t *transaction, nowMs int64) Notice {
	t.noticeMs = nowMs + m.noticeMs
	m.schedule(t)
	return t.waiting(nowMs)
}

func (t *transaction) waiting(nowMs int64) Notice {
	return Notice{Described: t.describe(), AgeMs: nowMs - t.startMs, Kept: t.state == Kept}
}

// Undecided answers with a []Notice of all open transactions without a timeout, in the
// order of their ids.
func (m *Machine) Undecided(nowMs int64, to Token) Output {
	ids := make([]string, 0, len(m.undecided))
	for id := range m.undecided {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	list := make([]Notice, len(ids))
	for i, id := range ids {
		list[i] = m.undecided[id].waiting(nowMs)
	}
	return refuse(to, list)
}
