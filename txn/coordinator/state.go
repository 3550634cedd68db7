package coordinator

import "strconv"

// State is where a transactional id stands. The numbers up to Dead are those of
// Kafka's log.
type State int8

// The states of a transactional id.
const (
	// Empty: initialised, nothing done since.
	Empty State = iota
	// Ongoing: at least one partition was added; the timeout runs.
	Ongoing
	// PrepareCommit: the decision to commit is in the log, markers are on their
	// way. There is no way back.
	PrepareCommit
	// PrepareAbort is the same for an abort, by the client, the timeout, or a newer
	// producer of the same id.
	PrepareAbort
	// CompleteCommit: all markers of the commit are durable.
	CompleteCommit
	// CompleteAbort is the same for an abort.
	CompleteAbort
	// Dead: the id is forgotten. It is never written, a tombstone stands for it.
	Dead
)

// Kept is Ongoing that a new incarnation of its producer has taken over without
// deciding it, in a two-phase commit (KIP-939): no further partition, only a
// decision. In the log it is Ongoing with the next epoch set, as Kafka lays it out,
// so it has no number there.
const Kept State = 16

// absent stands for an id that the machine does not know.
const absent State = -1

// predecessors says which states a state may follow, and by what event. A
// handler that finds no edge here refuses with INVALID_TXN_STATE.
var predecessors = map[State][]State{
	// InitProducerId: a new id, a new incarnation, or a client that recovers.
	Empty: {absent, Empty, CompleteCommit, CompleteAbort},
	// The first partition, or one more.
	Ongoing: {Ongoing, Empty, CompleteCommit, CompleteAbort},
	// InitProducerId that keeps the transaction, again and again.
	Kept: {Ongoing, Kept},
	// EndTxn(commit).
	PrepareCommit: {Ongoing, Kept},
	// EndTxn(abort), timeout, InitProducerId over an open transaction. From the
	// others only the empty abort of version 2, which raises the epoch.
	PrepareAbort: {Ongoing, Kept, Empty, CompleteCommit, CompleteAbort},
	// All markers are durable.
	CompleteCommit: {PrepareCommit},
	CompleteAbort:  {PrepareAbort},
	// The id expired.
	Dead: {Empty, CompleteCommit, CompleteAbort},
}

// Follows says whether s may come after prev.
func (s State) Follows(prev State) bool {
	for _, p := range predecessors[s] {
		if p == prev {
			return true
		}
	}
	return false
}

// open says that a transaction can still take either decision.
func (s State) open() bool { return s == Ongoing || s == Kept }

// deciding says that a decision is taken and its markers are on their way.
func (s State) deciding() bool { return s == PrepareCommit || s == PrepareAbort }

// complete says that a decision was carried out.
func (s State) complete() bool { return s == CompleteCommit || s == CompleteAbort }

var stateNames = map[State]string{
	absent: "absent", Empty: "Empty", Ongoing: "Ongoing", PrepareCommit: "PrepareCommit", PrepareAbort: "PrepareAbort",
	CompleteCommit: "CompleteCommit", CompleteAbort: "CompleteAbort", Dead: "Dead", Kept: "Kept",
}

// String gives Kafka's name of the state.
func (s State) String() string {
	if n, ok := stateNames[s]; ok {
		return n
	}
	return "State(" + strconv.Itoa(int(s)) + ")"
}

// Cause says who decided on an abort. A commit has none.
type Cause int8

// The causes of an abort.
const (
	// ByClient is the client's own EndTxn.
	ByClient Cause = iota
	// ByTimeout is the coordinator, because the transaction took too long. The same
	// client may go on with the next epoch.
	ByTimeout
	// ByRecovery is the same client's InitProducerId over its open transaction
	// (KIP-360). It may go on, as above.
	ByRecovery
	// ByRival is a newer producer with the same transactional id. Whoever had the id
	// before is fenced.
	ByRival
)

// String names the cause in dumps.
func (c Cause) String() string {
	switch c {
	case ByClient:
		return "client"
	case ByTimeout:
		return "timeout"
	case ByRecovery:
		return "recovery"
	case ByRival:
		return "rival"
	}
	return "Cause(" + strconv.Itoa(int(c)) + ")"
}
