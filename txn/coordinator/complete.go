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
		next.producerID, next.epoch = md.nextID, 0
	}
	return next
}

// PrepareRequest is the vote of a client in a two-phase commit (KIP-939).
type PrepareRequest struct {
	ID         string
	ProducerID int64
	Epoch      int16
}

// PrepareReply is the answer.
type PrepareReply struct {
	Code int16
}

// Prepare records the vote: the transaction takes no further partition and has no
// timeout, it waits for the decision of whoever leads the two-phase commit.
func (m *Machine) Prepare(nowMs int64, to Token, r PrepareRequest) Output {
	t := m.get(r.ID)
	switch {
	case t == nil || r.ProducerID != t.producerID:
		return refuse(to, PrepareReply{Code: CodeInvalidProducerIDMap})
	case r.Epoch != t.epoch:
		return refuse(to, PrepareReply{Code: CodeProducerFenced})
	case t.state == Prepared:
		return refuse(to, PrepareReply{})
	}
	next, ok := t.to(Prepared, nowMs)
	if !ok {
		return refuse(to, PrepareReply{Code: CodeInvalidTxnState})
	}
	next.nextID, next.nextEpoch = t.producerID, min(t.epoch, maxDataEpoch)+1
	return Output{Records: []Record{logged(r.ID, next)}, Replies: []Reply{{To: to, Response: PrepareReply{}}}}
}
