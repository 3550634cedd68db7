package coordinator

// EndRequest commits or aborts the transaction of a producer.
type EndRequest struct {
	ID         string
	ProducerID int64
	Epoch      int16
	Commit     bool
	// Version is that of the EndTxn request; from 5 on the epoch rises with every
	// end (KIP-890).
	Version int16
}

// EndReply is the answer. ProducerID and Epoch are those for the next transaction,
// -1 after an error and below version 5.
type EndReply struct {
	Code       int16
	ProducerID int64
	Epoch      int16
}

func endRefused(code int16) EndReply { return EndReply{Code: code, ProducerID: none, Epoch: none} }

// EndTxn decides an open transaction. Its answer leaves with the decision's
// markers. A repeat of an EndTxn that was carried out is answered like the first.
func (m *Machine) EndTxn(nowMs int64, to Token, r EndRequest) Output {
	if r.ID == "" {
		return refuse(to, endRefused(CodeInvalidRequest))
	}
	t := m.get(r.ID)
	if t == nil {
		return refuse(to, endRefused(CodeInvalidProducerIDMap))
	}
	switch {
	case r.Version >= endBumpsEpoch:
		return m.endV2(t, nowMs, to, r)
	case t.state == Kept:
		// Its owner speaks a version that raises the epoch, or could not have kept it.
		return refuse(to, endRefused(fenced(r.Version, endKnowsFenced)))
	}
	return m.endV1(t, nowMs, to, r)
}

// target and done are the states of a decision.
func (r EndRequest) target() State {
	if r.Commit {
		return PrepareCommit
	}
	return PrepareAbort
}

func (r EndRequest) done() State {
	if r.Commit {
		return CompleteCommit
	}
	return CompleteAbort
}

// endV1 ends a transaction with the epoch as it is, so that a delayed request can
// not be told from a new one: the flaw of version 1 (KAFKA-17754).
func (m *Machine) endV1(t *transaction, nowMs int64, to Token, r EndRequest) Output {
	if r.ProducerID != t.producerID {
		return refuse(to, endRefused(CodeInvalidProducerIDMap))
	}
	if r.Epoch != t.epoch {
		return refuse(to, t.endStaleV1(r))
	}
	switch {
	case t.state.open():
		next, ok := t.to(r.target(), nowMs)
		if !ok {
			return refuse(to, endRefused(CodeInvalidTxnState))
		}
		next.clientVersion, next.lastEpoch = 0, none
		return decided(to, r.ID, next, endRefused(CodeNone))
	case t.state == r.target():
		return refuse(to, endRefused(CodeConcurrentTransactions))
	case t.state == r.done():
		return refuse(to, endRefused(CodeNone))
	default:
		return refuse(to, endRefused(CodeInvalidTxnState))
	}
}

// endStaleV1 answers a request of version 1 with another epoch than the present
// one. It is fenced, unless the transaction was aborted by its timeout and nobody
// has taken the id since.
func (md metadata) endStaleV1(r EndRequest) EndReply {
	owner := md.cause == ByTimeout && r.Epoch == md.lastEpoch
	switch {
	case !owner:
		return endRefused(fenced(r.Version, endKnowsFenced))
	case r.Commit:
		return endRefused(commitAfterTimeout(r.Version))
	case md.state == PrepareAbort:
		return endRefused(CodeConcurrentTransactions)
	default:
		return endRefused(CodeNone)
	}
}

// endV2 ends a transaction and raises the epoch. The epoch also tells what the
// request is about: the stored one ("current") means the transaction that is open
// or would be next, the one before ("repeat") means the one that was decided last.
func (m *Machine) endV2(t *transaction, nowMs int64, to Token, r EndRequest) Output {
	from := identity{r.ProducerID, r.Epoch}
	// While the decision on a kept transaction is under way, the stored identity is that
	// of its markers, which no client has.
	current := from == t.owner() && r.Epoch <= maxDataEpoch && !(t.state.deciding() && t.nextEpoch != none)
	repeat := t.repeats(r)
	switch {
	case t.successor(from):
		// The end of the next transaction, before the last one is complete.
		return m.park(t, nowMs, to, r, endRefused(CodeConcurrentTransactions))
	case !repeat && !t.knows(r.ProducerID):
		return refuse(to, endRefused(CodeInvalidProducerIDMap))
	case !current && !repeat:
		return refuse(to, endRefused(CodeProducerFenced))
	case t.state.deciding() || repeat:
		return m.endDecided(t, nowMs, to, r)
	case t.state.open():
		return m.endOpen(t, nowMs, to, r)
	case r.Commit:
		return refuse(to, endRefused(CodeInvalidTxnState))
	default:
		return m.endEmpty(t, nowMs, to, r)
	}
}

// repeats says that the request has the epoch of the transaction that was decided
// last. A rival that took the id shuts the old owner out.
func (md metadata) repeats(r EndRequest) bool {
	if md.cause == ByRival || md.state.open() || md.state == Empty {
		return false
	}
	if md.state.deciding() && md.nextEpoch != none { // it was kept
		return r.ProducerID == md.previousID && r.Epoch == md.lastEpoch
	}
	if md.bumped() && r.ProducerID == md.producerID && int32(r.Epoch)+1 == int32(md.epoch) {
		return true
	}
	return md.rotatedFrom(r.ProducerID, r.Epoch)
}

// endDecided answers the repeat of a request whose transaction is decided.
func (m *Machine) endDecided(t *transaction, nowMs int64, to Token, r EndRequest) Output {
	switch {
	case t.state == r.target():
		return refuse(to, endRefused(CodeConcurrentTransactions))
	case t.state == r.done() && t.epoch > maxDataEpoch:
		// The coordinator's own abort has raised the epoch to the one that no data
		// may carry: an empty abort leads on to a new producer id.
		return m.endEmpty(t, nowMs, to, r)
	case t.state == r.done():
		return refuse(to, EndReply{ProducerID: t.producerID, Epoch: t.epoch})
	case r.Commit && t.cause == ByTimeout:
		return refuse(to, endRefused(commitAfterTimeout(r.Version)))
	default:
		return refuse(to, endRefused(CodeInvalidTxnState))
	}
}

// endOpen takes the decision on an open transaction.
func (m *Machine) endOpen(t *transaction, nowMs int64, to Token, r EndRequest) Output {
	next, err := m.raised(t, r.target(), nowMs)
	if err != nil {
		return refuse(to, endRefused(CodeCoordinatorLoading))
	}
	then := next.completed(nowMs)
	return decided(to, r.ID, next, EndReply{ProducerID: then.producerID, Epoch: then.epoch})
}

// raised makes the decision with the next epoch, and with a further producer id if
// the owner has no epoch left.
//
// A kept transaction raises two epochs: that of its records, for the markers, and
// that of the owner who decides, so that no delayed EndTxn of this decision can end
// the owner's next transaction.
func (m *Machine) raised(t *transaction, s State, nowMs int64) (metadata, error) {
	owner := t.owner()
	next, _ := t.to(s, nowMs) // the callers have looked at the state
	next.clientVersion, next.lastEpoch = 2, min(owner.epoch, maxDataEpoch)
	next.epoch = min(t.epoch, maxDataEpoch) + 1
	if t.state == Kept {
		next.previousID, next.nextID, next.nextEpoch = owner.producerID, owner.producerID, next.lastEpoch+1
	}
	if owner.exhausted() {
		pid, err := m.producerIDs()
		if err != nil {
			return metadata{}, err
		}
		next.nextID = pid
		if t.state == Kept {
			next.nextEpoch = 0
		}
	}
	return next, nil
}

// endEmpty raises the epoch of an id without an open transaction: the client can
// not know whether something it sent has arrived, and after this nothing of it can.
// There are no markers to wait for, so both records are written at once.
func (m *Machine) endEmpty(t *transaction, nowMs int64, to Token, r EndRequest) Output {
	next, err := m.raised(t, PrepareAbort, nowMs)
	if err != nil {
		return refuse(to, endRefused(CodeCoordinatorLoading))
	}
	next.partitions, next.startMs = []TopicPartition{}, nowMs
	last := next.completed(nowMs)
	return Output{
		Records: []Record{logged(r.ID, next), logged(r.ID, last)},
		Replies: []Reply{{To: to, Response: EndReply{ProducerID: last.producerID, Epoch: last.epoch}}},
	}
}

// decided writes a decision, whose answer waits for the markers.
func decided(to Token, id string, next metadata, reply EndReply) Output {
	return Output{
		Records:   []Record{logged(id, next)},
		Decisions: []Decision{decide(id, next, Reply{To: to, Response: reply})},
	}
}
