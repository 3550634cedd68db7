package coordinator

// InitRequest asks for the producer id and epoch of a transactional id.
type InitRequest struct {
	ID string
	// ProducerID and Epoch are those that the client has, to go on after an error
	// (KIP-360); both -1 for a new incarnation, which fences every older one.
	ProducerID int64
	Epoch      int16
	TimeoutMs  int32
	// Enable2PC says that transactions of this client take part in a two-phase commit:
	// they have no timeout (KIP-939).
	Enable2PC bool
	// KeepPrepared leaves an open transaction open, for the client to decide it. Without
	// it the transaction is aborted.
	KeepPrepared bool
	// Version is that of the InitProducerId request.
	Version int16
}

// InitReply is the answer; without an error the client owns ProducerID and Epoch.
type InitReply struct {
	Code       int16
	ProducerID int64
	Epoch      int16
	// OngoingProducerID and OngoingEpoch are those with which the transaction began that
	// was kept; -1 when there is none.
	OngoingProducerID int64
	OngoingEpoch      int16
}

func (r InitRequest) refused(code int16) InitReply {
	return InitReply{Code: code, ProducerID: none, Epoch: none, OngoingProducerID: none, OngoingEpoch: none}
}

// fresh says that the request comes from a new incarnation.
func (r InitRequest) fresh() bool { return r.ProducerID == none }

// from is the identity that the request claims.
func (r InitRequest) from() identity { return identity{r.ProducerID, r.Epoch} }

// timeout is what the client's transactions get.
func (r InitRequest) timeout() int32 {
	if r.Enable2PC {
		return NoTimeout
	}
	return r.TimeoutMs
}

// InitProducerID gives out the next epoch of a transactional id. An open
// transaction is aborted first, or kept, and a decision under way is waited for; the
// request goes on when that is complete.
func (m *Machine) InitProducerID(nowMs int64, to Token, r InitRequest) Output {
	if code := m.checkInit(r); code != CodeNone {
		return refuse(to, r.refused(code))
	}
	t := m.get(r.ID)
	switch {
	case t == nil:
		return m.initNew(nowMs, to, r)
	case t.state.deciding():
		return m.park(t, nowMs, to, r, r.refused(CodeConcurrentTransactions))
	case t.state.open() && r.KeepPrepared:
		return m.initKeep(t, nowMs, to, r)
	case t.state.open():
		return m.initOverOpen(t, nowMs, to, r)
	default:
		return m.initNext(t, nowMs, to, r)
	}
}

// checkInit has Kafka's order of checks, and its codes for a broker that does not take
// part in two-phase commits.
func (m *Machine) checkInit(r InitRequest) int16 {
	switch {
	case r.ID == "" || (r.ProducerID == none) != (r.Epoch == none):
		return CodeInvalidRequest
	case r.Enable2PC && !m.twoPhase:
		return CodeTransactionalIDAuthorization
	case r.KeepPrepared && !m.twoPhase:
		return CodeUnsupportedVersion
	case !r.Enable2PC && (r.TimeoutMs <= 0 || int64(r.TimeoutMs) > m.maxTimeoutMs):
		return CodeInvalidTxnTimeout
	}
	return CodeNone
}

// initNew begins a transactional id that the log does not know, be it new or
// expired: whatever the client remembers of it, it gets a new producer id.
func (m *Machine) initNew(nowMs int64, to Token, r InitRequest) Output {
	pid, err := m.producerIDs()
	if err != nil {
		return refuse(to, r.refused(CodeCoordinatorLoading))
	}
	next, _ := metadata{state: absent, producerID: pid}.to(Empty, nowMs)
	next.epoch, next.lastEpoch = 0, none
	return initialized(to, r, next)
}

// initOverOpen aborts the open transaction and lets the request wait for that.
func (m *Machine) initOverOpen(t *transaction, nowMs int64, to Token, r InitRequest) Output {
	cause := ByRival
	if !r.fresh() {
		if r.from() != t.owner() {
			return refuse(to, r.refused(fenced(r.Version, initKnowsFenced)))
		}
		cause = ByRecovery
	}
	out := m.park(t, nowMs, to, r, r.refused(CodeConcurrentTransactions))
	next := t.fence(nowMs, cause)
	out.Records = []Record{logged(t.id, next)}
	out.Decisions = []Decision{decide(t.id, next, Reply{})}
	return out
}

// initKeep takes an open transaction over, undecided. The client gets the next
// identity, so that whatever an earlier incarnation still asks for is fenced; the
// transaction keeps the identity that its records carry, by which the client knows it
// again.
//
// A transaction without a timeout stays without one, even for a client that did not
// ask for two-phase commit: a vote can not be taken back by a clock.
func (m *Machine) initKeep(t *transaction, nowMs int64, to Token, r InitRequest) Output {
	owner := t.owner()
	next, _ := t.to(Kept, nowMs) // every open state may precede it
	switch {
	case r.fresh():
		next.lastEpoch = none
	case r.from() == owner:
		next.lastEpoch = owner.epoch
	case t.state == Kept && r.Epoch == t.lastEpoch && (r.ProducerID == t.nextID || t.keptFrom(r.from())):
		// A repeat: the epoch has risen already and nobody has used it.
		next.nextID, next.nextEpoch, next.previousID = t.nextID, t.nextEpoch, t.previousID
		return kept(to, r, next)
	default:
		return refuse(to, r.refused(fenced(r.Version, initKnowsFenced)))
	}
	next.nextID, next.nextEpoch = owner.producerID, owner.epoch+1
	if owner.exhausted() {
		pid, err := m.producerIDs()
		if err != nil {
			return refuse(to, r.refused(CodeCoordinatorLoading))
		}
		next.previousID, next.nextID, next.nextEpoch = owner.producerID, pid, 0
	}
	return kept(to, r, next)
}

// keptFrom says that the owner got a new producer id for this identity, whose epochs
// are used up.
func (md metadata) keptFrom(o identity) bool {
	return md.nextID != md.previousID && o.producerID == md.previousID && o.exhausted()
}

// kept writes a transaction that waits for its new owner's decision.
func kept(to Token, r InitRequest, next metadata) Output {
	switch {
	case r.Enable2PC:
		next.timeoutMs, next.nextTimeoutMs = NoTimeout, none
	default:
		next.nextTimeoutMs = none
		if next.timeoutMs != r.TimeoutMs {
			next.nextTimeoutMs = r.TimeoutMs
		}
	}
	return Output{
		Records: []Record{logged(r.ID, next)},
		Replies: []Reply{{To: to, Response: InitReply{
			ProducerID: next.nextID, Epoch: next.nextEpoch,
			OngoingProducerID: next.producerID, OngoingEpoch: next.epoch,
		}}},
	}
}

// initNext gives out the next epoch of an id at rest.
func (m *Machine) initNext(t *transaction, nowMs int64, to Token, r InitRequest) Output {
	next, _ := t.to(Empty, nowMs) // every state at rest may precede it
	switch {
	case r.fresh():
		next.lastEpoch = none
	case r.ProducerID == t.producerID && r.Epoch == t.epoch:
		next.lastEpoch = t.epoch
	case r.ProducerID == t.producerID && r.Epoch == t.lastEpoch && t.epoch <= maxDataEpoch:
		// A repeat, or an owner whose transaction the coordinator aborted: the epoch
		// has risen already and nobody has used it.
		return initialized(to, r, next)
	case r.ProducerID == t.producerID && r.Epoch == t.lastEpoch:
		// As above, but the risen epoch is the one that no data may carry.
	case t.rotatedFrom(r.ProducerID, r.Epoch):
		next.previousID = t.previousID // so that a further repeat finds it too
		return initialized(to, r, next)
	default:
		return refuse(to, r.refused(fenced(r.Version, initKnowsFenced)))
	}
	if !t.owner().exhausted() {
		next.epoch = t.epoch + 1
		return initialized(to, r, next)
	}
	pid, err := m.producerIDs()
	if err != nil {
		return refuse(to, r.refused(CodeCoordinatorLoading))
	}
	next.producerID, next.epoch = pid, 0
	return initialized(to, r, next)
}

// initialized writes an id that waits for its next transaction.
func initialized(to Token, r InitRequest, next metadata) Output {
	next.timeoutMs = r.timeout()
	next.partitions, next.startMs = nil, none
	return Output{
		Records: []Record{logged(r.ID, next)},
		Replies: []Reply{{To: to, Response: InitReply{
			ProducerID: next.producerID, Epoch: next.epoch, OngoingProducerID: none, OngoingEpoch: none,
		}}},
	}
}
