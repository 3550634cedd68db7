package partition

import (
	"errors"
	"math"
	"time"

	"github.com/millrace/millrace/broker/internal/commitlog"
)

// Await runs fn once: with nil as soon as the high watermark is above the offset, so that what stands there is as durable as the
// topic wants it, or with an error when that can't happen any more. It may run at once, or later on another goroutine, and must
// not block.
func (p *Partition) Await(offset int64, fn func(error)) {
	p.waiters.add(offset, func() int64 { return p.view.Load().high.Offset }, fn)
}

// OnAdvance calls fn after every advance of the high watermark or the last stable offset, and when the partition ends, until
// it is cancelled. fn must not block; a call that is under way may still come after cancel.
func (p *Partition) OnAdvance(fn func()) (cancel func()) { return p.watchers.add(fn) }

// Flush is the flusher's: it makes durable what has been appended and tells those who wait.
func (p *Partition) Flush() {
	p.flushing.Lock()
	defer p.flushing.Unlock()
	err := p.flush(false)
	switch {
	case err != nil && !p.incomplete:
		p.logger.Warn("the flush is incomplete, and tried again with the next", "partition", p.name, "err", err)
	case err == nil && p.incomplete:
		p.logger.Info("the flush is complete again", "partition", p.name)
	}
	p.incomplete = err != nil
}

// flush is one group commit; final makes a checkpoint at the log's end. Those who wait are told of everything; the error is for
// the log line, and for Close. flushing is held.
func (p *Partition) flush(final bool) error {
	p.mu.Lock()
	if e := p.ended; e != nil && !final {
		p.mu.Unlock()
		p.over(e)
		return nil
	}
	plan := p.log.Begin(final && p.keeps)
	p.mu.Unlock()
	end := plan.End()
	if err := plan.Data(); err != nil {
		return errors.Join(err, p.unsynced(plan, end, err))
	}
	p.handle.NoteSynced(end.Offset)
	p.reached(end)
	checkpoint, made, err := plan.Indexes() // what fails here is tried again by the next flush
	if made {
		p.handle.NoteCheckpoint(checkpoint)
	}
	p.mu.Lock()
	if commitlog.Fatal(err) {
		p.end(p.storage("sync of an index", err))
	}
	err = errors.Join(err, plan.Done())
	doomed := p.log.Doomed()
	p.mu.Unlock()
	p.bury(doomed)
	if made {
		err = errors.Join(err, p.log.DropSnapshots())
	}
	return err
}

// reached takes a new durable end and tells everyone. flushing is held.
func (p *Partition) reached(end commitlog.Position) {
	moved := p.settled(end)
	p.tell()
	if moved {
		p.watchers.notify()
	}
}

// settled takes a new durable end; true when a watermark moved. flushing is held.
func (p *Partition) settled(end commitlog.Position) (moved bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.durable = end
	p.synced.Store(end.Offset)
	moved, err := p.advance()
	if err != nil { // only a follower's watermark has to be looked for
		p.logger.Error("the high watermark can't be found in the log", "partition", p.name, "err", err)
	}
	return moved
}

// tell answers those whose offset is as durable as they want it.
func (p *Partition) tell() {
	p.waiters.run(p.view.Load().high.Offset)
	p.strict.run(p.strictly())
}

// flushAgain is how long after a flush that could not be done, for want of a descriptor or of room, the next one is tried.
const flushAgain = 100 * time.Millisecond

// unsynced handles a failed sync: the partition is over if the kernel may have dropped what was to be synced. flushing is held.
func (p *Partition) unsynced(plan *commitlog.Sync, end commitlog.Position, cause error) error {
	e := p.storage("sync", cause)
	p.mu.Lock()
	if commitlog.Fatal(cause) {
		p.end(e)
	}
	over := p.ended
	err := plan.Done()
	if over == nil && p.alarm == nil {
		// Whoever sends the records again is told of the first time, and asks for no sync. So one has to come by itself.
		p.alarm = p.clock.AfterFunc(flushAgain, p.due)
	}
	p.mu.Unlock()
	if over != nil {
		p.over(e)
	} else {
		p.waiters.fail(end.Offset, e, false)
		p.strict.fail(end.Offset, e, false)
	}
	return err
}

// over tells everyone that nothing more will come. flushing is held.
func (p *Partition) over(e *Error) {
	p.tell() // what was carried is durable all the same
	p.waiters.fail(math.MaxInt64, e, true)
	p.strict.fail(math.MaxInt64, e, true)
	p.watchers.notify()
}
