package partition

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/compact"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/producer"
)

// Compaction says how a round may go about it.
type Compaction struct {
	NowMs      int64 // a time that the caller trusts
	TableBytes int   // for the keys: see compact.NewTable
	// Pace is told of all bytes that were read or written, and may sleep; its error ends the round. nil does not pace.
	Pace func(bytes int) error
}

// Compacted is what a round of compaction did.
type Compacted struct {
	Counts compact.Counts
	More   bool // the table was full: the next round has more to do
}

// ErrStopped ends a round without an error: because the partition is closed, because its segments are not there any more, or because Pace
// says so.
var ErrStopped = errors.New("the round is given up")

// Dirtiness tells whether a round of compaction is due, and how dirty the log is: the share of bytes that no round has seen. For a
// clean log it looks at a few numbers in memory, and at no file.
func (p *Partition) Dirtiness(nowMs int64) (ratio float64, due bool, err error) {
	if !p.log.Config().Compacted || p.failed.Load() != nil {
		return 0, false, nil
	}
	p.cleaning.Lock()
	defer p.cleaning.Unlock()
	r, err := p.plan(nowMs)
	if err != nil {
		return 0, false, p.storage("compaction", err)
	}
	return r.plan.Ratio, r.plan.Due || r.pending, nil
}

// Compact does a round of compaction if one is due: see package compact for what goes, and commitlog for how segments are replaced.
// Nothing at or above the last stable offset is touched, nor the active segment. An error leaves the log as good as it was; what
// was replaced stays so, and the next round does the rest. The locks of appends and fetches are held for moments only.
func (p *Partition) Compact(o Compaction) (c Compacted, err error) {
	if !p.log.Config().Compacted || p.failed.Load() != nil {
		return c, nil
	}
	p.cleaning.Lock()
	defer p.cleaning.Unlock()
	c, err = p.compact(o)
	if errors.Is(err, ErrStopped) {
		return c, nil
	}
	if err != nil {
		err = p.storage("compaction", err)
	}
	return c, err
}

// round is one round of compaction.
type round struct {
	p       *Partition
	o       Compaction
	config  commitlog.Config
	pieces  []commitlog.Piece
	plan    compact.Plan
	pending bool // an earlier round left files to be put in place
	last    map[int64]producer.Last
	filter  *compact.Filter
}

// plan looks what there is to do. cleaning is held.
func (p *Partition) plan(nowMs int64) (r round, err error) {
	r = round{p: p, config: *p.log.Config()}
	stable := p.view.Load().stable
	p.mu.Lock()
	var waiting bool
	r.pieces, waiting = p.log.Pieces(stable)
	r.pending = p.log.Pending()
	end := p.log.Next()
	p.mu.Unlock()
	if waiting {
		p.handle.Dirty()
	}
	segments := make([]compact.Segment, len(r.pieces))
	for i, piece := range r.pieces {
		segments[i] = compact.Segment{Base: piece.Base, End: piece.End, Bytes: piece.Bytes}
	}
	progress := p.log.Progress()
	r.plan, err = compact.Choose(segments, compact.Terms{
		NowMs: nowMs, LogStart: p.log.LogStart(), LogEnd: end, Cleaned: progress.Cleaned, HorizonMs: progress.HorizonMs,
		DirtyRatio: r.config.DirtyRatio, MinLagMs: r.config.MinLagMs, MaxLagMs: r.config.MaxLagMs,
		First:    func(i int) (int64, error) { return p.log.FirstTime(r.pieces[i]) },
		Greatest: func(i int) (int64, error) { return p.log.GreatestTime(r.pieces[i]) },
	})
	return r, err
}

func (p *Partition) compact(o Compaction) (c Compacted, err error) {
	if err := p.settle(); err != nil {
		return c, err
	}
	r, err := p.plan(o.NowMs)
	if err != nil || !r.plan.Due {
		return c, err
	}
	if err := p.sync(p.view.Load().high.Offset); err != nil { // what goes is decided by markers that must not go themselves
		return c, err
	}
	r.o = o
	r.pieces = r.pieces[:r.plan.Count]
	p.mu.Lock()
	r.last = p.producers.table.Last()
	p.mu.Unlock()
	table := compact.NewTable(o.TableBytes)
	next, full, err := r.index(table)
	if err != nil {
		return c, err
	}
	for len(r.pieces) > 1 && r.pieces[len(r.pieces)-1].Base >= next {
		r.pieces = r.pieces[:len(r.pieces)-1]
	}
	before := p.log.Progress()
	end := r.pieces[len(r.pieces)-1].End
	if err := r.prepare(end); err != nil {
		return c, err
	}
	err = r.rewrite(table, next)
	c = Compacted{Counts: r.filter.Counts(), More: full}
	if err != nil {
		return c, err
	}
	after := commitlog.Progress{Cleaned: next, Rewritten: max(before.Rewritten, end)}
	after.HorizonMs, _ = r.filter.Horizon() // the greatest int64 without one
	return c, p.log.SetProgress(after)
}

// index notes the last offset of each key that no round has seen, until the table is full; next is the offset behind.
func (r *round) index(t *compact.Table) (next int64, full bool, err error) {
	aborted, err := r.p.log.Aborted(nil, r.plan.From, r.plan.Until)
	if err != nil {
		return 0, false, err
	}
	x := compact.NewIndex(t, r.plan.From, aborted)
	for _, piece := range r.pieces {
		if piece.End <= r.plan.From || full {
			continue
		}
		err := r.p.log.Scan(piece, func(b record.Batch) error {
			more, err := x.Add(b)
			if err == nil && !more {
				full = true
				return errFull
			}
			return errors.Join(err, r.pace(len(b)))
		})
		if errors.Is(err, commitlog.ErrOutOfRange) {
			return 0, false, ErrStopped // deleted meanwhile
		}
		if err != nil && !errors.Is(err, errFull) {
			return 0, false, fmt.Errorf("keys: %w", err)
		}
	}
	if next = x.Next(); !full {
		next = r.plan.Until // behind the last batch there may be a gap
	}
	return next, full, nil
}

var errFull = errors.New("the table of keys is full")

// prepare makes durable what a recovery has to know before any batch below end is missing: that gaps there are no damage, and a
// checkpoint behind it, so that nothing below is ever replayed into the producers' state.
func (r *round) prepare(end int64) error {
	progress := r.p.log.Progress()
	progress.Rewritten = max(progress.Rewritten, end)
	if err := r.p.log.SetProgress(progress); err != nil {
		return err
	}
	point, known, err := r.p.handle.Settle()
	if err != nil {
		return err
	}
	if known && point.Checkpoint.Offset < end {
		r.p.mu.Lock()
		r.p.log.WantCheckpoint()
		r.p.mu.Unlock()
		r.p.handle.Dirty()
		return fmt.Errorf("the recovery journal has a checkpoint at offset %d only, %d is needed", point.Checkpoint.Offset, end)
	}
	return nil
}

// rewrite replaces the pieces, group by group.
func (r *round) rewrite(t *compact.Table, next int64) error {
	log := r.p.log
	aborted, err := log.Aborted(nil, r.pieces[0].Base, r.plan.Until)
	r.filter = compact.NewFilter(compact.Round{
		NowMs: r.o.NowMs, DeleteRetentionMs: r.config.DeleteRetentionMs, Table: t, Indexed: next, End: r.plan.Until,
		Last: r.last, Aborted: aborted,
	})
	if err != nil {
		return err
	}
	for left := r.pieces; len(left) > 0; {
		segments := make([]compact.Segment, len(left))
		for i, piece := range left {
			segments[i] = compact.Segment{Base: piece.Base, End: piece.End, Bytes: piece.Bytes}
		}
		n := compact.Group(segments, r.config.SegmentBytes)
		if err := r.group(left[:n]); errors.Is(err, commitlog.ErrPiecesGone) || errors.Is(err, commitlog.ErrOutOfRange) {
			return ErrStopped // deleted from the front meanwhile: the next round sees what is left
		} else if err != nil {
			return err
		}
		left = left[n:]
	}
	return nil
}

// group makes one segment of some pieces and puts it in their place.
func (r *round) group(pieces []commitlog.Piece) error {
	d, err := r.p.log.NewDraft(pieces)
	if err != nil {
		return err
	}
	for _, piece := range pieces {
		if err = r.fill(d, piece); err != nil {
			break
		}
	}
	d.AddAborted(r.filter.TakeAborted())
	if err != nil || !d.Changed() {
		return errors.Join(err, d.Discard())
	}
	return r.p.install(d)
}

func (r *round) fill(d *commitlog.Draft, piece commitlog.Piece) error {
	return r.p.log.Scan(piece, func(b record.Batch) error {
		left, err := r.filter.Apply(b)
		if err != nil {
			return fmt.Errorf("batch at offset %d: %w", b.BaseOffset(), err)
		}
		if err := d.Add(b, left); err != nil {
			return err
		}
		return r.pace(len(b) + len(left))
	})
}

func (r *round) pace(bytes int) error {
	if r.p.stopping.Load() {
		return ErrStopped
	}
	if r.o.Pace == nil {
		return nil
	}
	return r.o.Pace(bytes)
}

// install puts a complete draft in the place of its pieces. cleaning is held.
func (p *Partition) install(d *commitlog.Draft) error {
	err := d.Begin(func(claim func() error) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ended != nil {
			return ErrStopped
		}
		return claim()
	})
	if err != nil {
		return errors.Join(err, d.Discard())
	}
	if err := d.Publish(); err != nil {
		p.mu.Lock()
		if commitlog.Fatal(err) {
			p.end(p.storage("compaction", err))
			p.mu.Unlock()
			return err
		}
		p.log.Abandon()
		doomed := p.log.Doomed()
		p.mu.Unlock()
		p.bury(doomed)
		return errors.Join(err, d.Discard())
	}
	p.mu.Lock()
	release := p.log.Replace()
	p.mu.Unlock()
	return errors.Join(release(), p.settle())
}

// settle puts the files of a replaced segment in place, if that is not done yet. cleaning is held.
func (p *Partition) settle() error {
	p.mu.Lock()
	pending := p.log.Pending()
	p.mu.Unlock()
	if !pending {
		return nil
	}
	err := p.log.Settle()
	p.mu.Lock()
	if err == nil {
		p.log.Settled()
	} else if commitlog.Fatal(err) {
		p.end(p.storage("compaction", err))
	}
	doomed := p.log.Doomed()
	p.mu.Unlock()
	p.bury(doomed)
	return err
}
