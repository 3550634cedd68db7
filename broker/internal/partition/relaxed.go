package partition

import (
	"time"

	"github.com/millrace/millrace/broker/internal/commitlog"
)

// What an acknowledgement waits for is the topic's choice (commitlog.Durability). Under fsync every append asks for a sync at once,
// and the high watermark follows the durable offset. In the relaxed modes the high watermark follows the log's end, and a sync is
// asked for when one of the bounds is reached, when a segment is full, and by whoever needs one:
//
//   - AwaitDurable, for what a coordinator writes down as done;
//   - DeleteRecords and Compact, because what they remove can not come back, and what they go by must not go;
//   - Close.
//
// So a power cut takes a suffix of the log, never something out of the middle, and the producers' state, which is derived from the
// log, goes back with it.

// firm is how far the topic's durability lets acknowledgements, and so readers, go. The append lock is held.
func (p *Partition) firm() commitlog.Position {
	c := p.log.Config()
	if !c.Relaxed || p.ended != nil {
		return p.durable
	}
	end := p.log.End()
	if c.FlushMessages > 0 && end.Offset-p.durable.Offset >= c.FlushMessages {
		return p.durable
	}
	return end
}

// appended sees to the sync of what was appended, and moves the watermarks where that does not have to wait for it. The append lock
// is held.
func (p *Partition) appended() (moved bool) {
	c := p.log.Config()
	if !c.Relaxed {
		p.handle.Dirty()
		return false
	}
	switch {
	case p.log.Sealed(), c.FlushMessages > 0 && p.log.Next()-p.durable.Offset >= c.FlushMessages:
		p.handle.Dirty()
	default:
		p.arm(c)
	}
	moved, err := p.advance()
	if err != nil { // only a follower's watermark has to be looked for
		p.logger.Error("the high watermark can't be found in the log", "partition", p.name, "err", err)
	}
	return moved
}

// maxAlarmMs is a year. Longer times would overflow a time.Duration.
const maxAlarmMs = 365 * 24 * 3600 * 1000

// arm sees to it that a sync is asked for when flush.ms is over. The append lock is held.
func (p *Partition) arm(c *commitlog.Config) {
	if c.Relaxed && c.FlushMs > 0 && p.alarm == nil {
		p.alarm = p.clock.AfterFunc(time.Duration(min(c.FlushMs, maxAlarmMs))*time.Millisecond, p.due)
	}
}

// due asks for the sync that flush.ms asks for.
func (p *Partition) due() {
	p.mu.Lock()
	p.alarm = nil
	late := p.ended == nil && p.durable.Offset < p.log.Next()
	p.mu.Unlock()
	if late {
		p.handle.Dirty()
	}
}

// calm takes the alarm back. The append lock is held.
func (p *Partition) calm() {
	if p.alarm != nil {
		p.alarm.Stop()
		p.alarm = nil
	}
}

// AwaitDurable is Await for something that a power cut must not take back whatever the topic's durability is: fn runs when the
// offset is below the high watermark and synced.
func (p *Partition) AwaitDurable(offset int64, fn func(error)) {
	p.strict.add(offset, p.strictly, fn)
	if p.synced.Load() <= offset {
		p.handle.Dirty()
	}
}

// strictly is what AwaitDurable goes by.
func (p *Partition) strictly() int64 { return min(p.view.Load().high.Offset, p.synced.Load()) }

// sync returns when everything below an offset is durable. It takes flushing.
func (p *Partition) sync(below int64) error {
	if p.synced.Load() >= below {
		return nil
	}
	p.Flush()
	if p.synced.Load() >= below {
		return nil
	}
	if e := p.failed.Load(); e != nil {
		return e
	}
	return p.errorf(CodeKafkaStorageError, "what lies below offset %d can't be synced", below)
}
