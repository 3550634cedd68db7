package history

import "strconv"

// Key names a partition: what the literature on this workload calls a key.
type Key struct {
	Topic     string
	Partition int32
}

func (k Key) String() string { return k.Topic + "/" + strconv.Itoa(int(k.Partition)) }

// Type says what an event tells of its operation.
type Type uint8

const (
	// Invoke is the start of an operation.
	Invoke Type = iota
	// OK: it took effect.
	OK
	// Fail: it certainly has no effect and never will have one. Whoever records
	// a history must be strict here: a timeout is no Fail.
	Fail
	// Info: whether it took effect is not known.
	Info
)

// Kind says what an operation does.
type Kind uint8

const (
	// Send writes records outside of transactions.
	Send Kind = iota
	// Poll reads at read_committed outside of transactions.
	Poll
	// Txn sends, polls and commits offsets of a group in one transaction.
	Txn
	// Assign replaces what the process reads by the partitions in Event.Keys.
	Assign
	// Subscribe makes the process a member of Event.Group, which shares
	// Event.Keys among its members.
	Subscribe
	// Crash ends a process without a goodbye. Its number is not used again.
	Crash
	// Marks observes the watermarks of partitions.
	Marks
	// Committed observes the committed offsets of a group, stable ones: none is
	// pending in a transaction whose end is not known to the group.
	Committed
	// Drain ends a history: no transaction is open any more, and OK says that
	// everything was read, from the start to the end. Info says that the readers
	// did not get there in time, or that a client could not work again.
	Drain
)

// Step is a part of a Send, Poll or Txn.
type Step struct {
	Kind StepKind
	// At is the time at which the step was over, or for StepCommit and StepAbort
	// the time just before the request left; 0 is unknown.
	At int64

	Key    Key   // of StepSend
	Value  int64 // of StepSend
	Offset int64 // of StepSend: where the record is, Unknown if nobody said

	Reads []Read // of StepPoll, in the order in which they came

	Group string     // of StepOffsets
	Next  []Position // of StepOffsets: the offsets that the transaction commits
}

// StepKind says what a step does.
type StepKind uint8

const (
	// StepSend sends one record.
	StepSend StepKind = iota
	// StepPoll asks for records once.
	StepPoll
	// StepOffsets adds offsets of a group to the transaction.
	StepOffsets
	// StepCommit and StepAbort end the transaction.
	StepCommit
	StepAbort
)

// Unknown is the offset of a record whose place is not known.
const Unknown = -1

// Read is a record that a poll returned.
type Read struct {
	Key    Key
	Value  int64
	Offset int64
}

// Position is an offset of a partition.
type Position struct {
	Key    Key
	Offset int64
}

// Mark is what a broker said of a partition: where its log starts, its last stable
// offset and its high watermark.
type Mark struct {
	Key                 Key
	Start, Stable, High int64
}

// Event is the start or the end of an operation. A process has one operation at a
// time. An end without a start counts as an operation that took no time; a start
// without an end as one of unknown outcome.
type Event struct {
	Time    int64 // nanoseconds since the history began; ends come after starts
	Process int
	Type    Type
	Kind    Kind

	// Steps of the end are what was done, those of the start what was planned;
	// they count where the end has none.
	Steps []Step

	Group      string     // of Subscribe and Committed
	Keys       []Key      // of Assign and Subscribe
	FromStart  bool       // of Assign: read from the start, not from where the process was
	Rebalanced []Key      // partitions that a group gave or took while the operation ran
	Positions  []Position // of Committed
	Marks      []Mark     // of Marks
	Note       string     // why it failed, for people
}
