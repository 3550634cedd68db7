package coordinator

// Completed says that all markers of a decision are durable. A decision that is no
// longer the one under way is left alone: it was carried out twice.
func (m *Machine) Completed(nowMs int64, d Decision) Output {
	t := m.get(d.ID)
	if t == nil || !t.state.deciding() || t.producerID != d.ProducerID || t.epoch != d.Epoch ||
		(t.state == PrepareCommit) != d.Commit {
		return Output{}
	}
	return Output{Records: []Record{logged(d.ID, t.completed(nowMs))}}
}

// completed makes the state behind a decision.
func (md metadata) completed(nowMs int64) metadata {
	s := CompleteAbort
	if md.state == PrepareCommit {
		s = CompleteCommit
	}
	next, _ := md.to(s, nowMs) // the callers have looked at the state
	next.partitions = []TopicPartition{}
	if md.nextID != none {
		next.producerID, next.epoch = md.nextID, max(md.nextEpoch, 0)
	}
	if md.nextEpoch != none { // it was kept: repeats come with the identity that decided
		next.previousID = md.previousID
	}
	if md.nextTimeoutMs != none {
		next.timeoutMs = md.nextTimeoutMs
	}
	return next
}
