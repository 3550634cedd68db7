package partition

import "fmt"

// Kafka's error codes that a partition answers with, besides those of record.Error and producer.Error.
const (
	CodeOffsetOutOfRange        int16 = 1
	CodeNotLeaderOrFollower     int16 = 6
	CodeRecordListTooLarge      int16 = 18
	CodeInvalidTxnState         int16 = 48
	CodeKafkaStorageError       int16 = 56
	CodeTransactionAbortable    int16 = 120
	CodeUnknownTopicOrPartition int16 = 3
)

// Error is an answer of the partition itself.
type Error struct {
	Code   int16  // Kafka's error code
	Reason string // topic-partition, what is wrong, and the limit
	// Offline says that the partition takes nothing more until it is opened again. Other storage errors are refusals: what was asked
	// for is not in the log, the rest is as it was, and the same may be tried again.
	Offline bool
	cause   error
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %v", e.Reason, e.cause)
	}
	return e.Reason
}

// ErrorCode is the code for the protocol.
func (e *Error) ErrorCode() int16 { return e.Code }

// Unwrap is the cause, for a storage error the file system's.
func (e *Error) Unwrap() error { return e.cause }
