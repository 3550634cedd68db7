package coord

import (
	"fmt"

	"github.com/millrace/millrace/txn/producer"
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
	p.AwaitDurable(a.LastOffset, durable)
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
	p.AwaitDurable(end-1, fn)
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
