package broker

import (
	"fmt"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
)

// metadataLog is the partition of __cluster_metadata as metadata.Store uses it.
// The store calls Append under its lock, so the builder needs none.
type metadataLog struct {
	p       *partition.Partition
	clock   clock.Clock
	builder record.Builder
}

// Append implements metadata.Log.
func (l *metadataLog) Append(values [][]byte) (last int64, err error) {
	l.builder.Reset(record.BuilderOptions{})
	now := l.clock.Now().UnixMilli()
	for _, v := range values {
		l.builder.Append(now, nil, v, nil)
	}
	batch, err := l.builder.Batch()
	if err != nil {
		return 0, err
	}
	a, err := l.p.Append(batch, partition.AppendOptions{Origin: partition.OriginCoordinator})
	return a.LastOffset, err
}

// Await implements metadata.Log.
func (l *metadataLog) Await(offset int64, fn func(error)) { l.p.Await(offset, fn) }

// Replay implements metadata.Log.
func (l *metadataLog) Replay(fn func(offset int64, value []byte) error) error {
	var scratch record.Scratch
	return l.p.Replay(func(b record.Batch) error {
		if b.Attributes().Control() {
			return nil
		}
		r, err := b.Reader(&scratch)
		if err != nil {
			return fmt.Errorf("metadata log, batch at offset %d: %w", b.BaseOffset(), err)
		}
		for r.Next() {
			rec := r.Record()
			if err := fn(rec.Offset, rec.Value); err != nil {
				return err
			}
		}
		return r.Err()
	})
}

// Close implements metadata.Log.
func (l *metadataLog) Close() error { return l.p.Close() }
