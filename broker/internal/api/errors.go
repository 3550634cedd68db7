package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/replicas"
	"github.com/millrace/millrace/core/record"
)

// coded is an error that knows what the protocol calls it.
type coded interface {
	error
	ErrorCode() int16
}

// codeOf is the protocol's code for an error, 0 for nil. What nobody named is
// UNKNOWN_SERVER_ERROR, as in Kafka.
func codeOf(err error) int16 {
	if err == nil {
		return 0
	}
	if c, ok := errors.AsType[coded](err); ok {
		return c.ErrorCode()
	}
	if k, ok := errors.AsType[*kerr.Error](err); ok {
		return k.Code
	}
	switch {
	case errors.Is(err, replicas.ErrUnknownTopic), errors.Is(err, replicas.ErrUnknownPartition):
		return kerr.UnknownTopicOrPartition.Code
	case errors.Is(err, replicas.ErrOffline):
		return kerr.KafkaStorageError.Code
	case errors.Is(err, metadata.ErrClosed):
		return kerr.BrokerNotAvailable.Code
	}
	return kerr.UnknownServerError.Code
}

// recordErrors is the list of single records that a batch was refused for.
func recordErrors(err error) []record.RecordError {
	if e, ok := errors.AsType[*record.Error](err); ok {
		return e.Records
	}
	return nil
}

// refusal is an error with a code and a message for the client.
type refusal struct {
	code    int16
	message string
}

func (r *refusal) Error() string    { return r.message }
func (r *refusal) ErrorCode() int16 { return r.code }
