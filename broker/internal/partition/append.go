package partition

import (
	"errors"
	"math"
	"sync"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/producer"
)

var scratches = sync.Pool{New: func() any { return new(record.Scratch) }}

// Append appends the one batch that records holds and returns where it stands. It writes base offset, leader epoch and, if the
// topic asks for it, the time into the given bytes. The batch is in the log then, for readers only once it is durable: who
// acknowledges it waits with Await. A batch that is one of its producer's last five is not appended again: the answer has
// Duplicate set and the old offsets. Errors are *record.Error, *producer.Error or *[Error], all with a method ErrorCode.
func (p *Partition) Append(records []byte, o AppendOptions) (Appended, error) {
	b, err := record.Single(records)
	if err != nil {
		return Appended{}, err
	}
	now, config := p.nowMs(), p.log.Config()
	if err := p.validate(b, o, now, config); err != nil {
		return Appended{}, err
	}
	a, moved, err := p.append(b, o, now, config)
	if moved {
		p.watchers.notify()
	}
	return a, err
}

// append is Append under the lock. moved tells that a watermark did, which under the topic's durability it may at once.
func (p *Partition) append(b record.Batch, o AppendOptions, now int64, config *commitlog.Config) (a Appended, moved bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.writable(); err != nil {
		return a, false, err
	}
	if b.HasProducer() {
		dup, isDup, err := p.checkProducer(b, o)
		if err != nil {
			return a, false, err
		}
		if isDup {
			return Appended{
				BaseOffset: dup.BaseOffset, LastOffset: dup.LastOffset, LogAppendTimeMs: dup.TimestampMs,
				LogStartOffset: p.log.LogStart(), Duplicate: true,
			}, false, nil
		}
	}
	b.SetBaseOffset(p.log.Next())
	b.SetLeaderEpoch(p.role.epoch())
	stamp := int64(record.NoTimestamp)
	if config.LogAppendTime { // under the lock, so that times rise with offsets
		stamp = p.nowMs()
		b.SetLogAppendTime(stamp)
	}
	if err := p.write(b, now); err != nil {
		if b.HasProducer() && o.Origin == OriginClient {
			p.guards.begin(b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), now)
		}
		return a, false, err
	}
	if b.HasProducer() {
		p.producers.table.Apply(batchOf(b, now))
		p.guards.drop(b.ProducerID())
	}
	a = Appended{BaseOffset: b.BaseOffset(), LastOffset: b.LastOffset(), LogAppendTimeMs: stamp, LogStartOffset: p.log.LogStart()}
	return a, p.appended(), nil
}

// validate checks what the batch alone shows, outside of the lock, and settles a header that is not true.
func (p *Partition) validate(b record.Batch, o AppendOptions, now int64, config *commitlog.Config) error {
	rules := record.Rules{MaxBytes: config.MaxMessageBytes}
	if o.Origin == OriginClient {
		rules.NoZstd = o.RequestVersion < 7
		rules.CompactedTopic = config.Compacted
		rules.LogAppendTime = config.LogAppendTime
		rules.NowMs, rules.BeforeMaxMs, rules.AfterMaxMs = now, config.TimestampBeforeMaxMs, config.TimestampAfterMaxMs
	} else {
		rules.AllowBaseOffset = true // the same bytes may come again after a failed write
	}
	scratch := scratches.Get().(*record.Scratch)
	info, err := b.Validate(rules, scratch)
	scratches.Put(scratch)
	if err != nil {
		return err
	}
	if int64(len(b)) > config.SegmentBytes {
		return p.errorf(CodeRecordListTooLarge, "the batch has %d bytes, segment.bytes is %d", len(b), config.SegmentBytes)
	}
	if info.Untrue && !config.LogAppendTime {
		b.Settle(info)
	}
	return nil
}

// writable tells whether a client's batch may be appended now. The append lock is held.
func (p *Partition) writable() error {
	if p.ended != nil {
		return p.ended
	}
	if _, leads := p.role.(Leader); !leads {
		return p.errorf(CodeNotLeaderOrFollower, "this broker follows under leader epoch %d", p.role.epoch())
	}
	return nil
}

// checkProducer decides about sequence, epoch and transaction. The append lock is held.
func (p *Partition) checkProducer(b record.Batch, o AppendOptions) (dup producer.Duplicate, isDup bool, err error) {
	t := &p.producers.table
	next := batchOf(b, 0)
	if o.Origin == OriginClient {
		if dup, isDup, err = t.Check(next); err != nil || isDup {
			return dup, isDup, err
		}
		if next.Transactional && o.RequestVersion > 11 && next.BaseSequence != 0 && !t.Knows(next.ProducerID) {
			// Under transaction version 2 each transaction has an epoch of its own, and begins at 0. So nothing was forgotten here:
			// the batches before this one are still to come, as after a crash that lost them while a repeat of this one was under way.
			return dup, false, p.errorf(producer.CodeOutOfOrderSequence, "producer %d: sequence %d under epoch %d, of which nothing is in the log; a transaction begins at 0",
				next.ProducerID, next.BaseSequence, next.Epoch)
		}
		if lowest, missing := p.guards.missing(next.ProducerID, next.Epoch, next.BaseSequence); missing {
			return dup, false, p.errorf(producer.CodeOutOfOrderSequence, "producer %d: sequence %d under epoch %d, before which %d was seen and is not in the log",
				next.ProducerID, next.BaseSequence, next.Epoch, lowest)
		}
	} else if err := t.CheckInternal(next); err != nil {
		return dup, false, err
	}
	if !next.Transactional {
		return dup, false, nil
	}
	if _, open := t.Open(next.ProducerID, next.Epoch); open || p.guards.holds(o.Guard, next.ProducerID, next.Epoch) {
		return dup, false, nil
	}
	if o.Origin == OriginCoordinator && o.Guard == (Guard{}) {
		return dup, false, nil
	}
	code := CodeInvalidTxnState
	if o.RequestVersion > 10 {
		code = CodeTransactionAbortable
	}
	return dup, false, p.errorf(code, "producer %d has no transaction open under epoch %d, and the coordinator's word for one is "+
		"missing or out of date", next.ProducerID, next.Epoch)
}

// write appends final bytes; appended follows, once the producers' state knows of them. The append lock is held.
func (p *Partition) write(b record.Batch, nowMs int64) error {
	if b.LastOffset() > math.MaxInt64-1 || b.LastOffset() < b.BaseOffset() {
		return p.errorf(CodeKafkaStorageError, "offsets are used up at %d", b.BaseOffset())
	}
	if err := p.log.Append(b, nowMs); err != nil {
		e := p.storage("append", err)
		if commitlog.Fatal(err) {
			p.end(e)
		} else if p.refusals.refused(len(b), nowMs) {
			p.logger.Error("writes to the partition fail, what it has can be read", "partition", p.name, "err", err)
		}
		return e
	}
	if p.refusals.any && p.refusals.over(len(b), nowMs) {
		p.logger.Info("writes to the partition work again", "partition", p.name)
	}
	p.logEnd.Store(p.log.Next())
	return nil
}

// end stops all appending, for good. The append lock is held; the next flush, or whoever closes, tells those who wait.
func (p *Partition) end(e *Error) {
	if p.ended != nil {
		return
	}
	p.ended = e
	p.failed.Store(e)
	if e.Code == CodeKafkaStorageError {
		p.logger.Error("the partition goes offline", "partition", p.name, "err", e)
	}
	p.handle.Dirty()
}

// TxnOpen tells whether exactly this producer and epoch have a transaction open here.
func (p *Partition) TxnOpen(producerID int64, epoch int16) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, open := p.producers.table.Open(producerID, epoch)
	return open
}

// BeginVerify must be called before the coordinator is asked whether the producer has a transaction with this partition in
// it; what it returns makes the answer count when the batch is appended, unless a marker was written in between.
func (p *Partition) BeginVerify(producerID int64, epoch int16, baseSequence int32) Guard {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.guards.begin(producerID, epoch, baseSequence, p.nowMs())
}

// AppendMarker appends the end of a producer's transaction. Refusals are *producer.Error, and one that wraps
// producer.ErrMarkerRepeated says that the marker is in the log already; the caller then waits for everything before the log
// end to be durable.
func (p *Partition) AppendMarker(m producer.Marker) (Appended, error) {
	a, moved, err := p.appendMarker(m)
	if moved {
		p.watchers.notify()
	}
	return a, err
}

// appendMarker is AppendMarker under the lock, see append.
func (p *Partition) appendMarker(m producer.Marker) (a Appended, moved bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.writable(); err != nil {
		return a, false, err
	}
	if err := p.producers.table.CheckMarker(m); err != nil {
		return a, false, err
	}
	now := p.nowMs()
	var buf [record.HeaderSize + 32]byte
	b := record.BuildControl(buf[:0], record.Marker{
		ProducerID: m.ProducerID, ProducerEpoch: m.Epoch, Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch, TimestampMs: now,
	})
	b.SetBaseOffset(p.log.Next())
	b.SetLeaderEpoch(p.role.epoch())
	if err := p.write(b, now); err != nil {
		return a, false, err
	}
	offset := b.BaseOffset()
	entry, first, aborted := p.producers.end(m, offset, now)
	if aborted {
		p.log.AddAborted(entry)
	}
	if first >= 0 {
		p.tracker.Decided(first, offset)
	}
	p.guards.drop(m.ProducerID)
	a = Appended{BaseOffset: offset, LastOffset: offset, LogAppendTimeMs: record.NoTimestamp, LogStartOffset: p.log.LogStart()}
	return a, p.appended(), nil
}

// readError makes an answer of an error of the log's readers. What is damaged is asked for again and again, and logged once.
func (p *Partition) readError(err error) error {
	if errors.Is(err, commitlog.ErrOutOfRange) {
		return p.errorf(CodeOffsetOutOfRange, "log start offset is %d", p.log.LogStart())
	}
	if ended := p.failed.Load(); ended != nil { // since the reader looked; the file may be gone
		return ended
	}
	e := p.storage("read", err)
	text := e.Error()
	if last := p.lastReadError.Swap(&text); last == nil || *last != text {
		p.logger.Error("a fetch is refused", "partition", p.name, "err", err)
	}
	return e
}
