package coordinator

// AddRequest adds partitions to the transaction of a producer, or verifies that
// they are in it.
type AddRequest struct {
	ID         string
	ProducerID int64
	Epoch      int16
	Partitions []TopicPartition
	// Implicit is the broker adding on behalf of a Produce or TxnOffsetCommit
	// request of transaction version 2 (KIP-890), which may begin a transaction.
	Implicit bool
	// VerifyOnly adds nothing: it asks, on behalf of a client of version 1, whether
	// the partitions are in.
	VerifyOnly bool
	// Version is that of the AddPartitionsToTxn or AddOffsetsToTxn request. It is
	// high for the two above, which are not requests of a client.
	Version int16
}

// AddReply has one code for each partition, in the order of the request.
type AddReply struct {
	Codes []int16
}

// all answers every partition with the same code.
func (r AddRequest) all(code int16) AddReply {
	codes := make([]int16, len(r.Partitions))
	for i := range codes {
		codes[i] = code
	}
	return AddReply{Codes: codes}
}

// AddPartitions adds partitions to the open transaction of an id, or begins one with
// them. All are added or none. While the last transaction is being completed the
// request waits.
func (m *Machine) AddPartitions(nowMs int64, to Token, r AddRequest) Output {
	if r.ID == "" {
		return refuse(to, r.all(CodeInvalidRequest))
	}
	if len(r.Partitions) == 0 {
		return refuse(to, AddReply{})
	}
	t := m.get(r.ID)
	if t == nil {
		return refuse(to, r.all(CodeInvalidProducerIDMap))
	}
	if code := t.checkAdd(r); code != CodeNone {
		return refuse(to, r.all(code))
	}
	switch {
	case r.VerifyOnly:
		return refuse(to, t.verify(r))
	case t.state.deciding():
		return m.park(t, nowMs, to, r, r.all(CodeConcurrentTransactions))
	case t.state == Ongoing && t.hasAll(r.Partitions):
		return refuse(to, r.all(CodeNone))
	}
	next, ok := t.to(Ongoing, nowMs)
	if !ok {
		return refuse(to, r.all(CodeInvalidTxnState))
	}
	if t.state == Ongoing {
		next.partitions = t.with(r.Partitions)
	} else {
		next.partitions = metadata{}.with(r.Partitions)
		next.startMs = nowMs
		next.clientVersion = 0
	}
	if r.Implicit {
		next.clientVersion = 2
	}
	// From here on the earlier epoch is that of a past transaction; whoever comes
	// with it is late.
	next.lastEpoch = none
	return Output{
		Records: []Record{logged(r.ID, next)},
		Replies: []Reply{{To: to, Response: r.all(CodeNone)}},
	}
}

// checkAdd says whether the request comes from the owner of the id.
func (md metadata) checkAdd(r AddRequest) int16 {
	from := identity{r.ProducerID, r.Epoch}
	switch {
	case md.successor(from):
		return CodeNone
	case !md.knows(r.ProducerID):
		return CodeInvalidProducerIDMap
	case !md.state.deciding() && from == md.owner() && r.Epoch >= 0 && r.Epoch <= maxDataEpoch:
		return CodeNone
	case md.state.deciding() && !md.bumped() && from == md.owner():
		// Version 1: the next transaction has the epoch of the last one.
		return CodeNone
	case md.cause == ByTimeout && r.Epoch == md.lastEpoch:
		return addAfterTimeout(r.Implicit)
	default:
		return fenced(r.Version, addKnowsFenced)
	}
}

// successor says that the decision under way gives the producer this identity next,
// and that it is another one than the producer had.
func (md metadata) successor(o identity) bool {
	switch {
	case !md.state.deciding() || o.epoch < 0 || o.epoch > maxDataEpoch:
		return false
	case md.nextID != none:
		return o == identity{md.nextID, max(md.nextEpoch, 0)}
	default:
		return md.bumped() && o == identity{md.producerID, md.epoch}
	}
}

// knows says that the producer id belongs to the transactional id at present.
func (md metadata) knows(pid int64) bool {
	return pid == md.producerID || md.state == Kept && pid == md.nextID ||
		md.state.deciding() && md.nextEpoch != none && (pid == md.nextID || pid == md.previousID)
}

// verify answers for each partition whether it is in the open transaction.
func (md metadata) verify(r AddRequest) AddReply {
	if md.state.deciding() {
		return r.all(CodeConcurrentTransactions)
	}
	reply := r.all(CodeNone)
	for i, tp := range r.Partitions {
		if md.state != Ongoing || !md.has(tp) {
			reply.Codes[i] = CodeTransactionAbortable
		}
	}
	return reply
}
