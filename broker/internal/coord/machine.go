package coord

import (
	"fmt"

	"github.com/millrace/millrace/core/record"
)

// Token names a caller that waits for a reply. A machine keeps it and gives it
// back; it never looks inside. Zero names nobody.
type Token uint64

// Record is one record for the shard's log. A nil value is a tombstone.
type Record struct {
	Key, Value []byte
}

// Txn makes an output's batch transactional: its records count when the marker
// of that producer commits them.
type Txn struct {
	ProducerID int64
	Epoch      int16
}

// Reply is an answer for a waiting caller.
type Reply struct {
	To       Token
	Response any
}

// Output is all that a handler of a machine has to say. The machine itself
// changes nothing that a record would change: the shard appends Records, replays
// them, and only then is the machine's state the new one.
type Output struct {
	// Records are appended as one batch. A batch that would be larger than the
	// log takes is an error, unless Splittable.
	Records []Record
	// Splittable says that Records may be spread over several batches, so that a
	// crash may keep only the first ones.
	Splittable bool
	// Txn is nil for ordinary records.
	Txn *Txn
	// Replies leave when everything that was appended so far is durable, so that
	// no caller knows what a power cut takes back.
	Replies []Reply
	// Effects are carried out when everything that was appended so far is
	// durable, outside of the shard's lock. What they are is between the machine
	// and the [Options.Effect] of its runtime.
	Effects []any
	// Pending names callers that an effect will answer ([Shard.Reply]). They are told
	// when the append fails, as those in Replies are.
	Pending []Token
	// Applied, if not nil, is called under the shard's lock when Records are appended
	// and replayed. It takes no lock of a shard or a partition.
	Applied func()
}

// Replayed is one record of the log on its way into a machine.
type Replayed struct {
	Offset      int64
	TimestampMs int64
	// ProducerID is -1 for records outside of a transaction.
	ProducerID    int64
	ProducerEpoch int16
	Transactional bool
	// Key and Value are the machine's to keep. A nil value is a tombstone.
	Key, Value []byte
}

// Machine is a coordinator: a state machine over one partition. It is pure (no
// clock, no lock, no goroutine) and called under its shard's lock. Replay and
// ReplayMarker are the only methods that change durable state, on the way in
// from a handler and when the log is loaded alike.
//
// Handlers are methods of the concrete machine that return an Output; the shard
// runs them through [Shard.Do].
type Machine interface {
	Replay(r Replayed) error
	// ReplayMarker ends a transaction on this partition.
	ReplayMarker(m record.Marker, offset int64) error
	// Tick does what is due at now.
	Tick(nowMs int64) Output
	// NextDeadline is the time of the next Tick that would do something.
	NextDeadline() (ms int64, ok bool)
}

// Loader is a machine that has something to do when its log was loaded, before
// the first request.
type Loader interface {
	Loaded(nowMs int64) Output
}

// Resumer is a machine that parks requests of its own. After every output was
// replayed it is asked for what can go on now, until ok is false.
type Resumer interface {
	Resume(nowMs int64) (out Output, ok bool)
}

// Forgetter is a machine that keeps tokens of its own. When an append fails, each
// caller that is told so is forgotten.
type Forgetter interface {
	Forget(to Token)
}

// Failure is what a caller gets in place of its response when the shard can not
// serve it. Handlers put the code into their own response.
type Failure struct {
	// Code is a Kafka error code, one that clients retry on: COORDINATOR_NOT_AVAILABLE
	// or COORDINATOR_LOAD_IN_PROGRESS, or RECORD_LIST_TOO_LARGE for an output that
	// does not fit in one batch.
	Code int16
	Err  error
	// Lost says that the shard gave up its machine, so that it is not known whether
	// what was asked for is in the log. Otherwise nothing has happened.
	Lost bool
}

// Kafka's error codes of a Failure.
const (
	CodeCoordinatorLoading      int16 = 14
	CodeCoordinatorNotAvailable int16 = 15
	CodeRecordListTooLarge      int16 = 18
)

func (f Failure) Error() string { return fmt.Sprintf("coordinator: code %d: %v", f.Code, f.Err) }

// Unwrap gives the cause.
func (f Failure) Unwrap() error { return f.Err }
