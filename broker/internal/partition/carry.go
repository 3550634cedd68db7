package partition

import (
	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
)

// Carry is the flusher's: it plans a flush whose bytes go into an append journal, together with those of other partitions, instead of
// a sync of the partition's own files.
func (p *Partition) Carry(buf []byte, max int) (piece flush.Piece, ok bool) {
	// Who holds flushing, such as Close, may do so for long, and all others would wait.
	if !p.carries || !p.flushing.TryLock() {
		return piece, false
	}
	plan := p.planCarry(int64(max))
	if plan == nil {
		p.flushing.Unlock()
		return piece, false
	}
	data, position, err := plan.Read(buf)
	if err != nil { // the flush that comes instead meets the same error, and says it
		p.endCarry(plan)
		return piece, false
	}
	p.carrying = plan
	return flush.Piece{File: plan.File(), Position: position, Next: plan.End().Offset, Data: data}, true
}

// planCarry is nil when the flush must be one of the partition's own files. flushing is held.
func (p *Partition) planCarry(max int64) *commitlog.Sync {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil || p.incomplete {
		return nil
	}
	return p.log.BeginCarry(max)
}

// endCarry ends the plan and gives flushing back. What it has to close are files of segments, which only readers had.
func (p *Partition) endCarry(plan *commitlog.Sync) {
	p.mu.Lock()
	err := plan.Done()
	p.mu.Unlock()
	if err != nil {
		p.logger.Warn("closing a segment", "partition", p.name, "err", err)
	}
	p.flushing.Unlock()
}

// Carried is the flusher's: it ends what Carry has planned.
func (p *Partition) Carried(failed error) {
	plan := p.carrying
	p.carrying = nil
	if failed == nil {
		plan.Carried()
		if p.settled(plan.End()) {
			p.told.Store(true)
		}
	}
	p.endCarry(plan)
}

// Tell is the flusher's: it tells those who wait for what was carried.
func (p *Partition) Tell() {
	p.tell()
	if p.told.Swap(false) {
		p.watchers.notify()
	}
}
