package record

import (
	"errors"
	"fmt"
)

// Kafka's error codes that a bad batch is answered with.
const (
	CodeCorruptMessage             int16 = 2
	CodeMessageTooLarge            int16 = 10
	CodeInvalidTimestamp           int16 = 32
	CodeUnsupportedCompressionType int16 = 76
	CodeInvalidRecord              int16 = 87
)

// ErrTruncated says that a buffer ends inside a batch. At the end of a file this is a torn tail; in the answer to a fetch
// it is the cut that Kafka makes at the byte limit.
var ErrTruncated = errors.New("record: the buffer ends inside a batch")

// ErrTooLarge says that the records of a batch, once decompressed, take more than the caller allows.
var ErrTooLarge = errors.New("the decompressed records are over the limit")

func tooLarge(limit int) error { return fmt.Errorf("%w of %d bytes", ErrTooLarge, limit) }

// CorruptError says that bytes cannot be what their place says they are: a length or magic that no batch of format 2 has,
// a checksum that does not fit, records that do not parse.
type CorruptError struct {
	Field string // the field of the header, or "records" for what stands behind it
	Value int64  // what stands there
	Want  string // what should, or the reason in words
}

func (e *CorruptError) Error() string {
	if e.Field == fieldRecords {
		return fmt.Sprintf("record: record %d of the batch is malformed: %s", e.Value, e.Want)
	}
	return fmt.Sprintf("record: the batch's %s is %d, want %s", e.Field, e.Value, e.Want)
}

const fieldRecords = "records"

// Error is the answer to a batch that may not be appended.
type Error struct {
	Code    int16         // Kafka's error code
	Reason  string        // what is wrong and what the limit is, without the topic, which this package does not know
	Records []RecordError // which records, when it is about some of them; at most [MaxRecordErrors]
	Failed  int           // how many records failed, also those beyond MaxRecordErrors
	cause   error
}

// RecordError is about one record of a refused batch. Produce answers carry them from version 8 on.
type RecordError struct {
	Index   int32 // the record's place in the batch, from 0
	Message string
}

// MaxRecordErrors bounds the list in [Error], so that a batch of a million bad records gives no answer of a million
// lines. Kafka's own message, too, shows only the first few.
const MaxRecordErrors = 10

func (e *Error) Error() string {
	s := "record: " + e.Reason
	if len(e.Records) > 0 {
		s += fmt.Sprintf(" (%d of its records; record %d: %s)", e.Failed, e.Records[0].Index, e.Records[0].Message)
	}
	return s
}

// Unwrap is the decoder's error where one was the cause.
func (e *Error) Unwrap() error { return e.cause }

// ErrorCode is the code for the protocol.
func (e *Error) ErrorCode() int16 { return e.Code }

func refuse(code int16, format string, args ...any) *Error {
	return &Error{Code: code, Reason: fmt.Sprintf(format, args...)}
}
