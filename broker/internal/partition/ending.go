package partition

import (
	"errors"

	"github.com/millrace/millrace/broker/internal/commitlog"
)

// DeleteRecords moves the log start to an offset, -1 for the high watermark, and returns where it is then. It returns when
// that is durable: a restart never shows the records again. OFFSET_OUT_OF_RANGE beyond the high watermark.
func (p *Partition) DeleteRecords(before int64) (low int64, err error) {
	if e := p.failed.Load(); e != nil {
		return -1, e
	}
	high := p.view.Load().high.Offset
	if before == -1 {
		before = high
	}
	if before < 0 || before > high {
		return -1, p.errorf(CodeOffsetOutOfRange, "records before offset %d can't be deleted, the high watermark is %d", before, high)
	}
	if start := p.log.LogStart(); before <= start {
		return start, nil
	}
	if err := p.sync(before); err != nil { // a log never starts behind its end, not after a power cut either
		return -1, err
	}
	if err := p.handle.SetLogStart(before); err != nil {
		return -1, p.storage("delete records", err)
	}
	p.mu.Lock()
	if e := p.ended; e != nil {
		p.mu.Unlock()
		return -1, e
	}
	p.log.SetLogStart(before)
	low, doomed := p.log.LogStart(), p.log.Doomed()
	p.mu.Unlock()
	p.bury(doomed)
	return low, nil
}

// bury takes the files of segments below the log start away. Their records are gone whether or not that works: the next opening
// removes the files.
func (p *Partition) bury(d commitlog.Doomed) {
	if err := d.Bury(p.nowMs()); err != nil {
		p.logger.Warn("files below the log start could not be removed", "partition", p.name, "err", err)
	}
}

// Close flushes, makes a checkpoint at the log's end, so that the next Open has nothing to replay, and closes. Those who wait
// for what could not be flushed get an error. Fetches under way keep their files.
func (p *Partition) Close() error {
	p.stopping.Store(true)
	p.cleaning.Lock()
	defer p.cleaning.Unlock()
	p.flushing.Lock()
	defer p.flushing.Unlock()
	p.mu.Lock()
	failure := p.ended
	closed := p.errorf(CodeNotLeaderOrFollower, "closed")
	if failure == nil {
		p.ended = closed
		p.failed.Store(closed)
	}
	p.mu.Unlock()
	if failure != nil && failure.Code != CodeKafkaStorageError {
		return nil // closed before
	}
	var err error
	if failure == nil {
		if err = p.flush(true); err != nil {
			err = p.storage("flush at the end", err)
		}
	} else {
		err = failure
	}
	if err = errors.Join(err, p.shut(closed)); err != nil {
		p.handle.Spoil()
	}
	return err
}

// shut closes the files and tells those who wait. flushing is held.
func (p *Partition) shut(why *Error) error {
	p.mu.Lock()
	p.ended = why
	p.failed.Store(why)
	p.calm()
	err := p.log.Close()
	p.mu.Unlock()
	p.over(why)
	if err != nil {
		return p.storage("close", err)
	}
	return nil
}

// Delete closes the partition and removes its folder, with everything that the recovery journal knows of it. Fetches under way
// keep reading what they have.
func (p *Partition) Delete() error {
	p.stopping.Store(true)
	p.cleaning.Lock()
	defer p.cleaning.Unlock()
	p.flushing.Lock()
	defer p.flushing.Unlock()
	gone := p.errorf(CodeUnknownTopicOrPartition, "deleted")
	p.mu.Lock()
	open := p.ended == nil || p.ended.Code == CodeKafkaStorageError
	p.ended = gone
	p.failed.Store(gone)
	p.mu.Unlock()
	if open {
		if err := p.shut(gone); err != nil {
			p.logger.Warn("closing a deleted partition", "partition", p.name, "err", err)
		}
	}
	if err := p.log.Delete(); err != nil {
		return p.storage("delete", err)
	}
	p.handle.Forget()
	return nil
}

// BecomeLeader takes the lead under a leader epoch.
func (p *Partition) BecomeLeader(l Leader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.role = l
	p.epoch.Store(l.Epoch)
	p.log.AssignEpoch(l.Epoch)
}

// BecomeFollower gives the lead up. Batches then come through the leader only.
func (p *Partition) BecomeFollower(f Follower) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.role = f
	p.epoch.Store(f.Epoch)
}
