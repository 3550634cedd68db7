package api

import (
	"sync"

	"github.com/millrace/millrace/core/record"
)

// repacker is what repacking a batch needs.
type repacker struct {
	scratch record.Scratch
	builder record.Builder
}

var repackers = sync.Pool{New: func() any { return new(repacker) }}

// repack compresses a batch anew for a topic whose compression.type is not that of
// the batch. The records, their times, and the producer's id and sequence stay. A
// batch that is not valid comes back as it is: the partition refuses it and says
// why, in terms of what the client sent.
func repack(b record.Batch, codec record.Codec, level int) record.Batch {
	p := repackers.Get().(*repacker)
	defer repackers.Put(p)
	if _, err := b.Validate(record.Rules{}, &p.scratch); err != nil {
		return b
	}
	o := record.BuilderOptions{Codec: codec, Level: level, Transactional: b.Attributes().Transactional()}
	if b.HasProducer() {
		o.Producer = &record.Producer{ID: b.ProducerID(), Epoch: b.ProducerEpoch(), Sequence: b.BaseSequence()}
	}
	p.builder.Reset(o)
	r, err := b.Reader(&p.scratch)
	if err != nil {
		return b
	}
	for r.Next() {
		rec := r.Record()
		p.builder.Append(rec.Timestamp, rec.Key, rec.Value, rec.Headers)
	}
	if r.Err() != nil {
		return b
	}
	packed, err := p.builder.Batch()
	if err != nil {
		return b
	}
	return append(record.Batch(nil), packed...) // the builder's memory is used again
}
