package partition

import (
	"sync"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
)

// Read is the answer to a fetch: whole batches as sections of files, which stay open until Release.
type Read struct {
	Sections []Section
	Bytes    int
	Marks    Marks
	Aborted  []isolation.AbortedTxn // only for read_committed, sorted by first offset
	span     commitlog.Span
	p        *Partition
}

var reads = sync.Pool{New: func() any { return new(Read) }}

// Release lets the files go. Nothing of the Read may be used after it.
func (r *Read) Release() {
	if err := r.span.Release(); err != nil {
		r.p.logger.Warn("files that are not needed any more could not be removed", "partition", r.p.name, "err", err)
	}
	*r = Read{span: r.span, Aborted: r.Aborted[:0]}
	reads.Put(r)
}

// Read finds the batches from the one that holds the offset on, up to the high watermark or, Committed, the last stable
// offset. It takes no lock that an append holds, and looks at no record. Beyond the log end or below the log start it answers
// OFFSET_OUT_OF_RANGE; between the mark and the log end there is nothing to read yet.
func (p *Partition) Read(o ReadOptions) (*Read, error) {
	for {
		swaps := p.log.Swaps()
		r, err := p.read(o)
		if p.log.Swaps() == swaps {
			return r, err
		}
		if err == nil { // compaction came in between
			r.Release()
		}
	}
}

func (p *Partition) read(o ReadOptions) (*Read, error) {
	if e := p.failed.Load(); e != nil {
		return nil, e
	}
	v := p.view.Load()
	marks := p.marks(v)
	if o.Offset < marks.LogStart || o.Offset > marks.LogEnd {
		return nil, p.errorf(CodeOffsetOutOfRange, "offset %d, log start offset is %d, log end offset is %d",
			o.Offset, marks.LogStart, marks.LogEnd)
	}
	limit, err := p.limit(v, o.Committed)
	if err != nil {
		return nil, p.readError(err)
	}
	r := reads.Get().(*Read)
	r.p, r.Marks = p, marks
	err = p.log.Slice(&r.span, o.Offset, limit, int(o.MaxBytes), o.AtLeastOne)
	if err == nil && o.Committed && r.span.Bytes > 0 {
		r.Aborted, err = p.log.Aborted(r.Aborted, o.Offset, r.span.Next)
	}
	if err != nil {
		r.Release()
		return nil, p.readError(err)
	}
	r.Sections, r.Bytes = r.span.Sections, r.span.Bytes
	return r, nil
}

// limit is how far a reader may go.
func (p *Partition) limit(v *view, committed bool) (commitlog.Position, error) {
	if !committed || v.stable >= v.high.Offset {
		return v.high, nil
	}
	if at := v.stableAt.Load(); at != nil {
		return *at, nil
	}
	at, err := p.log.Locate(max(v.stable, p.log.LogStart()), v.high)
	if err != nil {
		return at, err
	}
	v.stableAt.Store(&at)
	return at, nil
}

// OffsetForTime finds the first record that a reader may see with a timestamp of ts or later. ok is false when there is none.
func (p *Partition) OffsetForTime(ts int64, committed bool) (offset, timestamp int64, epoch int32, ok bool, err error) {
	return p.lookUp(committed, func(limit commitlog.Position) (commitlog.Found, bool, error) {
		return p.log.FirstAt(ts, p.log.LogStart(), limit)
	})
}

// MaxTimestamp finds the first of the records with the greatest timestamp. ok is false when there is no record.
func (p *Partition) MaxTimestamp(committed bool) (offset, timestamp int64, epoch int32, ok bool, err error) {
	return p.lookUp(committed, p.log.MaxTimestamp)
}

func (p *Partition) lookUp(
	committed bool, find func(commitlog.Position) (commitlog.Found, bool, error),
) (offset, timestamp int64, epoch int32, ok bool, err error) {
	for {
		swaps := p.log.Swaps()
		offset, timestamp, epoch, ok, err = p.lookUpOnce(committed, find)
		if p.log.Swaps() == swaps {
			return offset, timestamp, epoch, ok, err
		}
	}
}

func (p *Partition) lookUpOnce(
	committed bool, find func(commitlog.Position) (commitlog.Found, bool, error),
) (offset, timestamp int64, epoch int32, ok bool, err error) {
	if e := p.failed.Load(); e != nil {
		return -1, -1, -1, false, e
	}
	limit, err := p.limit(p.view.Load(), committed)
	if err != nil {
		return -1, -1, -1, false, p.readError(err)
	}
	f, ok, err := find(limit)
	if err != nil {
		return -1, -1, -1, false, p.readError(err)
	}
	if !ok {
		return -1, -1, -1, false, nil
	}
	return f.Offset, f.Timestamp, f.Epoch, true, nil
}

// EpochEnd answers OffsetForLeaderEpoch: the largest known epoch that is not above the given one, and the offset at which it
// ends, for the current one the log end. (-1, -1) when nothing is known.
func (p *Partition) EpochEnd(epoch int32) (found int32, end int64) {
	return p.log.EpochEnd(epoch, p.logEnd.Load())
}

// EpochAt is the leader epoch of the batch at an offset, -1 when unknown.
func (p *Partition) EpochAt(offset int64) int32 { return p.log.EpochAt(offset) }

// Replay calls fn for every batch from the log start to the log end, durable or not; it stops at fn's error. A batch is valid
// during the call. Checksums are checked on the way.
func (p *Partition) Replay(fn func(record.Batch) error) error {
	p.mu.Lock()
	end := p.log.Next()
	p.mu.Unlock()
	return p.log.Replay(end, fn)
}
