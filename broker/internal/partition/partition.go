package partition

import (
	"errors"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
	"github.com/millrace/millrace/txn/producer"
)

// Partition is one partition.
type Partition struct{ o Options }

var errOpening = errors.New("partition: being built")

// Open opens the partition's log, or begins it.
func Open(o Options) (*Partition, error) { return &Partition{o}, errOpening }

// Append appends one batch. It is durable only after Await.
func (p *Partition) Append(batch []byte, o AppendOptions) (Appended, error) {
	return Appended{}, errOpening
}

// TxnOpen tells whether this producer and epoch have a transaction open here.
func (p *Partition) TxnOpen(producerID int64, epoch int16) bool { return false }

// BeginVerify starts a verification with the coordinator.
func (p *Partition) BeginVerify(producerID int64, epoch int16) Guard { return Guard{} }

// AppendMarker appends the end of a transaction.
func (p *Partition) AppendMarker(m producer.Marker) (Appended, error) { return Appended{}, errOpening }

// Await runs fn once, when the high watermark is above offset, or with an error when that can't happen any more.
func (p *Partition) Await(offset int64, fn func(error)) { fn(errOpening) }

// OnAdvance calls fn after every advance of a watermark and when the partition ends.
func (p *Partition) OnAdvance(fn func()) (cancel func()) { return func() {} }

// Marks are the watermarks.
func (p *Partition) Marks() Marks { return Marks{} }

// Read is the answer to a fetch.
type Read struct {
	Sections []Section
	Bytes    int
	Marks    Marks
	Aborted  []isolation.AbortedTxn
}

// Release lets the files go; the sections must not be used after it.
func (r *Read) Release() {}

// Read finds the batches from an offset on.
func (p *Partition) Read(r ReadOptions) (*Read, error) { return nil, errOpening }

// OffsetForTime finds the first record at or after a time.
func (p *Partition) OffsetForTime(ts int64, committed bool) (offset, timestamp int64, epoch int32, ok bool, err error) {
	return 0, 0, 0, false, errOpening
}

// MaxTimestamp finds the first record with the greatest timestamp.
func (p *Partition) MaxTimestamp(committed bool) (offset, timestamp int64, epoch int32, ok bool, err error) {
	return 0, 0, 0, false, errOpening
}

// EpochEnd gives the end offset of a leader epoch.
func (p *Partition) EpochEnd(epoch int32) (found int32, end int64) { return -1, -1 }

// DeleteRecords moves the log start offset.
func (p *Partition) DeleteRecords(before int64) (low int64, err error) { return 0, errOpening }

// Replay gives every batch of the log.
func (p *Partition) Replay(fn func(record.Batch) error) error { return errOpening }

// Reconfigure takes new topic settings.
func (p *Partition) Reconfigure(c commitlog.Config) {}

// Close flushes and closes.
func (p *Partition) Close() error { return nil }

// Delete closes and removes the folder.
func (p *Partition) Delete() error { return nil }
