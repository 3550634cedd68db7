package partition

import (
	"errors"
)

// Retained is what a round of retention did.
type Retained struct {
	Start    int64 // the log start
	Bytes    int64 // how much less the log is
	PinnedBy int64 // see commitlog.Expiry
}

// Retain lets go what the topic's retention does not keep, at a time in ms since 1970 that the caller trusts, begins a new segment
// where the active one has been idle for segment.ms, and deletes files that have waited for file.delete.delay.ms. Nothing at or
// above the last stable offset goes: not what is undecided, not what is not durable. The log start is durable before a file
// goes. One call of Retain or Compact runs at a time; an append or a fetch never waits for it longer than for a roll.
func (p *Partition) Retain(nowMs int64) (r Retained, err error) {
	p.cleaning.Lock()
	defer p.cleaning.Unlock()
	r.Start = p.log.LogStart()
	if p.failed.Load() != nil {
		return r, nil
	}
	before := p.log.Size()
	config := *p.log.Config()
	e, err := p.log.Expired(config, nowMs, p.view.Load().stable, p.logEnd.Load())
	if err == nil && e.Start > r.Start {
		err = p.expire(e.Start, nowMs)
	}
	err = errors.Join(err, p.RollIdle(nowMs), p.log.Exhume(nowMs))
	if err != nil {
		err = p.storage("retention", err)
	}
	return Retained{Start: p.log.LogStart(), Bytes: max(before-p.log.Size(), 0), PinnedBy: e.PinnedBy}, err
}

// expire moves the log start to the beginning of a segment, or to the log's end, where a new segment begins then.
func (p *Partition) expire(start, nowMs int64) error {
	p.mu.Lock()
	err, ended := error(nil), p.ended != nil
	if !ended && start == p.log.Next() {
		if _, err = p.log.RollAt(start, nowMs); err == nil {
			p.handle.Dirty() // the flush writes the snapshot without which the segments before may not go
		}
	}
	if !ended && err == nil {
		start = p.log.Floor(start)
	}
	p.mu.Unlock()
	if ended || err != nil {
		return err
	}
	_, err = p.DeleteRecords(start)
	return err
}

// Compacts tells whether the topic is compacted.
func (p *Partition) Compacts() bool { return p.log.Config().Compacted }

// RollIdle begins a new segment where the active one has been idle for segment.ms: compaction leaves the active one alone.
func (p *Partition) RollIdle(nowMs int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.writable() != nil {
		return nil
	}
	done, err := p.log.RollIdle(nowMs)
	if done && err == nil {
		p.handle.Dirty()
	}
	return err
}
