package coord

import (
	"errors"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/producer"
)

// Kafka's error codes that a partition answers a marker with.
const (
	codeUnknownServerError      int16 = -1
	codeUnknownTopicOrPartition int16 = 3
	codeInvalidProducerEpoch    int16 = 47
	codeTransactionCoordFenced  int16 = 52
	codeStorageError            int16 = 56
	txnVersionStrict            int16 = 2
	txnVersionEqual             int16 = 1
)

// markerCode is the code of an error of appendMarker.
func markerCode(err error) int16 {
	var pe *partition.Error
	var re *record.Error
	var ue *producer.Error
	var f Failure
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrNoPartition):
		return codeUnknownTopicOrPartition
	case errors.As(err, &ue):
		return ue.Code
	case errors.As(err, &pe):
		return pe.Code
	case errors.As(err, &re):
		return re.Code
	case errors.As(err, &f):
		return f.Code
	default:
		return codeUnknownServerError
	}
}
