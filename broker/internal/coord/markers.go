package coord

import (
	"errors"
	"fmt"

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

// appendMarker appends one marker to a partition, through the group coordinator's
// shard where it has one. durable is called once unless there is an error.
func (t *Transactions) appendMarker(tp TopicPartition, m producer.Marker, durable func(error)) error {
	switch tp.Topic {
	case GroupTopic:
		return t.o.Groups.AppendMarker(tp.Partition, m, durable)
	case TxnTopic:
		return t.rt.AppendMarker(tp.Partition, m, durable)
	}
	p, err := t.o.Data(tp.Topic, tp.Partition)
	if err != nil {
		return err
	}
	a, err := p.AppendMarker(m)
	if err != nil {
		return err
	}
	p.Await(a.LastOffset, durable)
	return nil
}

// awaitAll calls fn when all that a partition holds now is durable.
func (t *Transactions) awaitAll(tp TopicPartition, fn func(error)) {
	switch tp.Topic {
	case GroupTopic:
		t.o.Groups.AwaitAll(tp.Partition, fn)
		return
	case TxnTopic:
		t.rt.AwaitAll(tp.Partition, fn)
		return
	}
	p, err := t.o.Data(tp.Topic, tp.Partition)
	if err != nil {
		fn(err)
		return
	}
	end := p.Marks().LogEnd
	if end == 0 {
		fn(nil)
		return
	}
	p.Await(end-1, fn)
}

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

// WriteMarker obeys a WriteTxnMarkers request for one partition, as the tools send it
// to end a hanging transaction: the transaction coordinator is not asked. done gets
// the code when the marker is durable.
func (t *Transactions) WriteMarker(tp TopicPartition, m producer.Marker, done func(code int16)) {
	err := t.appendMarker(tp, m, func(err error) {
		if err != nil {
			t.o.Logger.Warn("marker of a client is not durable", "partition", fmt.Sprintf("%s-%d", tp.Topic, tp.Partition), "error", err)
			done(codeStorageError)
			return
		}
		done(0)
	})
	if err != nil {
		done(markerCode(err))
	}
}
