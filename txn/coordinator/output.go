package coordinator

// Token names a caller that waits for an answer. The machine keeps it and gives it
// back. Zero names nobody.
type Token uint64

// Record is one record for the log. A nil value is a tombstone.
type Record struct {
	Key, Value []byte
}

// Reply is an answer for a waiting caller: an [InitReply], [AddReply] or
// [EndReply]. It leaves when all records so far are durable.
type Reply struct {
	To       Token
	Response any
}

// Output is what a handler has to say. Records belong together: all of them are
// appended, or none.
type Output struct {
	Records []Record
	Replies []Reply
	// Decisions are carried out once Records are durable.
	Decisions []Decision
	// Notices are for whoever operates the broker.
	Notices []Notice
}

// Decision is a transaction whose outcome is in the log as Prepare…. Whoever
// carries it out
//
//  1. appends the marker to every partition, again and again until it succeeds; a
//     partition that was deleted is done, and so is one that refuses the marker
//     as a repeat;
//  2. sends Reply as soon as all markers are appended, or after a second even if
//     they are not: the decision itself is durable;
//  3. calls [Machine.Completed] when all markers are durable.
type Decision struct {
	ID         string
	ProducerID int64
	// Epoch is the epoch of the marker.
	Epoch      int16
	Commit     bool
	Partitions []TopicPartition
	// Bumped says that the marker's epoch is higher than that of the data, so that
	// a partition which has seen it already refuses it (KIP-1228).
	Bumped bool
	// Reply is the answer to the EndTxn; To is 0 when nobody waits.
	Reply Reply
}

// Described is a transactional id as an operator sees it (KIP-664).
type Described struct {
	ID         string
	ProducerID int64
	Epoch      int16
	State      State
	TimeoutMs  int32
	// StartMs is when the open or the last transaction began, -1 if there was none since InitProducerId.
	StartMs int64
	// Partitions are those of the transaction that is open or being completed. They are sorted and not to be changed.
	Partitions []TopicPartition
}

// Notice tells of a transaction that waits for a decision and has no timeout.
type Notice struct {
	Described
	// AgeMs is how long it has been open.
	AgeMs int64
	// Kept says that a later incarnation of its producer has taken it over, undecided.
	Kept bool
}

// refuse answers a request without a change.
func refuse(to Token, response any) Output {
	return Output{Replies: []Reply{{To: to, Response: response}}}
}
