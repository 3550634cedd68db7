package commitlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/core/record"
)

// The leader epochs stand twice: in the header of every batch, outside of its checksum, and in their file, which has none. When
// the two disagree the file is made again from all headers, as one flipped byte there would make every batch look wrong; what then
// still disagrees is a header.

// history collects epochs from the headers of consecutive batches. They never fall, so a header that claims more than the next
// one, or less than the last, is the wrong one of the two.
type history struct {
	list    []epochStart
	pending epochStart // an epoch that the next header has to confirm
	waiting bool
	end     int64 // of the last batch
}

func (h *history) add(epoch int32, start int64) {
	if h.waiting && epoch >= h.pending.epoch {
		h.list = append(h.list, h.pending)
	}
	h.waiting = epoch >= 0 && (len(h.list) == 0 || epoch > h.list[len(h.list)-1].epoch)
	h.pending = epochStart{epoch, start}
}

func (h *history) done() []epochStart {
	if h.waiting {
		h.list = append(h.list, h.pending)
	}
	return h.list
}

// headerEpochs is the history that the headers of all batches tell, and the end of the last one. A segment is left where a header
// does not parse.
func (l *Log) headerEpochs() (list []epochStart, end int64, err error) {
	var h history
	for _, s := range l.list() {
		if !s.acquire() {
			continue
		}
		err := l.collectEpochs(s, &h)
		if err = errors.Join(err, s.release()); err != nil {
			return nil, 0, fmt.Errorf("%s: leader epochs of segment %d: %w", l.o.Name, s.base, err)
		}
	}
	return h.done(), h.end, nil
}

func (l *Log) collectEpochs(s *segment, h *history) error {
	file, err := s.handle()
	if err != nil {
		return err
	}
	w := newWalker(file, s.size.Load())
	defer w.done()
	for pos := int64(0); ; {
		head, size, err := w.at(pos)
		if err != nil { // the end, or what others judge
			return nil
		}
		h.add(head.LeaderEpoch(), head.BaseOffset())
		h.end = head.LastOffset() + 1
		pos += size
	}
}

// repairEpochs makes the epochs again from the headers, once in the life of a Log: after that they agree, and stay so.
func (l *Log) repairEpochs(cause error) error {
	l.repairing.Lock()
	defer l.repairing.Unlock()
	if l.repaired {
		return nil
	}
	was, old := l.epochs.load()
	list, end, err := l.headerEpochs()
	if err != nil {
		return err
	}
	l.repaired = true
	if n, m := len(old), len(list); n > 0 && old[n-1].start >= end && (m == 0 || old[n-1].epoch > list[m-1].epoch) {
		// The leader's own, under which nothing was appended yet.
		list = append(list, old[n-1])
	}
	if slices.Equal(list, old) {
		return nil
	}
	l.logger.Warn("the leader epochs do not fit the log and are made again", "partition", l.o.Name, "cause", cause)
	if l.epochs.list.CompareAndSwap(was, &list) {
		l.epochDirty.Store(true)
	} else {
		l.repaired = false // an append has added one meanwhile: the next one who doubts does it
	}
	return nil
}

// checkEpoch compares a batch's leader epoch with the one of its time.
func (l *Log) checkEpoch(b record.Batch) error {
	err := l.compareEpoch(b)
	if err == nil {
		return nil
	}
	if rerr := l.repairEpochs(err); rerr != nil {
		return rerr
	}
	return l.compareEpoch(b)
}

func (l *Log) compareEpoch(b record.Batch) error {
	start := l.LogStart() // the epochs before it are forgotten
	epoch := b.LeaderEpoch()
	if epoch == -1 || b.LastOffset() < start { // -1 is a batch from before there were epochs
		return nil
	}
	if known := l.epochs.at(max(b.BaseOffset(), start)); known != epoch {
		return fmt.Errorf("the batch has leader epoch %d, the log was under %d", epoch, known)
	}
	return nil
}
