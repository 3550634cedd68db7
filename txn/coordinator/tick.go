package coordinator

// tickMax bounds how many transactions one Tick aborts, so that its output stays within
// one batch. What is left is due at once.
const tickMax = 64

// schedule puts t at the time at which something is due: its timeout, the end of the
// oldest wait, or its expiry.
func (m *Machine) schedule(t *transaction) {
	ms, ok := m.expiry(t)
	if at, has := t.timeout(); has {
		ms, ok = at, true
	}
	if at, has := m.notice(t); has {
		ms, ok = at, true
	}
	if len(t.parked) > 0 && (!ok || t.parked[0].untilMs < ms) {
		ms, ok = t.parked[0].untilMs, true
	}
	m.deadlines.set(t, ms, ok)
}

// NextDeadline is the time at which Tick has something to do.
func (m *Machine) NextDeadline() (ms int64, ok bool) {
	if len(m.deadlines) == 0 {
		return 0, false
	}
	return m.deadlines[0].deadlineMs, true
}

// Tick aborts the transactions whose timeout has passed, forgets the ids that expired,
// answers the requests that have waited too long, and tells of transactions that wait
// long for a decision. When its records can not be
// appended, they are due again: the next Tick makes the same ones.
func (m *Machine) Tick(nowMs int64) Output {
	var out Output
	for _, t := range m.due(nowMs) {
		m.expire(t, nowMs, &out)
		m.schedule(t)
		if ms, ok := m.expiry(t); ok && ms <= nowMs {
			out.Records = append(out.Records, tombstone(t.id))
			continue
		}
		if at, has := m.notice(t); has && at <= nowMs {
			out.Notices = append(out.Notices, m.noticed(t, nowMs))
		}
		if at, has := t.timeout(); !has || at > nowMs {
			continue
		}
		next := t.fence(nowMs, ByTimeout)
		out.Records = append(out.Records, logged(t.id, next))
		out.Decisions = append(out.Decisions, decide(t.id, next, Reply{}))
	}
	return out
}

// due returns the ids whose deadline has passed, as many as fit in one output, in order.
func (m *Machine) due(nowMs int64) []*transaction {
	var due []*transaction
	aborts, keys := 0, 0
	for len(m.deadlines) > 0 && m.deadlines[0].deadlineMs <= nowMs &&
		aborts < tickMax && len(due) < expireMax && keys < expireMaxBytes {
		t := m.deadlines[0]
		m.deadlines.set(t, 0, false)
		due = append(due, t)
		keys += len(t.id)
		if _, has := t.timeout(); has {
			aborts++
		}
	}
	for _, t := range due {
		m.schedule(t)
	}
	return due
}

// fence makes the abort that the coordinator itself decides on for an open
// transaction. It raises the epoch, so that the marker shuts out whatever the
// producer still sends. If the append fails nothing has changed, so the next try
// makes the same epoch (KAFKA-9666).
func (md metadata) fence(nowMs int64, cause Cause) metadata {
	next, _ := md.to(PrepareAbort, nowMs) // every open state may precede it
	next.epoch = min(md.epoch, maxDataEpoch) + 1
	next.cause = cause
	next.lastEpoch = md.owner().epoch
	if md.state == Kept { // both epochs rise, as in raised
		next.previousID, next.nextID = md.nextID, md.nextID
		next.nextEpoch = min(md.nextEpoch, maxDataEpoch) + 1
	}
	if cause == ByRival {
		next.lastEpoch = none
	}
	return next
}
