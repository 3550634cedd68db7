package coord

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/record"
)

var (
	errTooLarge = errors.New("records do not fit in one batch")
	// errReplay says that records are in the log and not in the machine.
	errReplay = errors.New("the machine can not replay its own records")
)

// recordOverhead bounds what a record takes beside its key and value: six varints
// of at most 5 bytes (the time's is small, all records of a batch have the same)
// and the attributes.
const recordOverhead = 31

// append writes the records of an output, replays them, and moves last. An error
// other than errReplay, when the output is not splittable, means that nothing was
// written.
func (s *Shard[M]) append(out Output) error {
	if !out.Splittable {
		if size := batchSize(out.Records); size > s.o.MaxBatchBytes {
			return fmt.Errorf("%s-%d: %w: %d records of %d bytes, the limit is %d",
				s.o.Topic, s.index, errTooLarge, len(out.Records), size, s.o.MaxBatchBytes)
		}
	}
	for rest := out.Records; len(rest) > 0; {
		n := s.fitting(rest)
		if err := s.appendBatch(rest[:n], out.Txn); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func batchSize(records []Record) int {
	size := record.HeaderSize
	for _, r := range records {
		size += len(r.Key) + len(r.Value) + recordOverhead
	}
	return size
}

// fitting is how many records fit in one batch, at least one.
func (s *Shard[M]) fitting(records []Record) int {
	size := record.HeaderSize
	for n, r := range records {
		size += len(r.Key) + len(r.Value) + recordOverhead
		if size > s.o.MaxBatchBytes && n > 0 {
			return n
		}
	}
	return len(records)
}

func (s *Shard[M]) appendBatch(records []Record, txn *Txn) error {
	nowMs := s.nowMs()
	p := record.Producer{ID: record.NoProducerID, Epoch: record.NoProducerEpoch, Sequence: s.o.BaseSequence}
	if txn != nil {
		p.ID, p.Epoch = txn.ProducerID, txn.Epoch
	}
	s.builder.Reset(record.BuilderOptions{Producer: &p, Transactional: txn != nil})
	for _, r := range records {
		s.builder.Append(nowMs, r.Key, r.Value, nil)
	}
	b, err := s.builder.Batch()
	if err != nil {
		return fmt.Errorf("%s-%d: %w", s.o.Topic, s.index, err)
	}
	a, err := s.log.Append(b, partition.AppendOptions{Origin: partition.OriginCoordinator})
	if err != nil {
		return err
	}
	s.last = a.LastOffset
	for i, r := range records {
		err := s.machine.Replay(Replayed{
			Offset: a.BaseOffset + int64(i), TimestampMs: nowMs,
			ProducerID: p.ID, ProducerEpoch: p.Epoch, Transactional: txn != nil,
			Key: r.Key, Value: r.Value,
		})
		if err != nil {
			return fmt.Errorf("%s-%d at offset %d: %w: %w", s.o.Topic, s.index, a.BaseOffset+int64(i), errReplay, err)
		}
	}
	return nil
}
