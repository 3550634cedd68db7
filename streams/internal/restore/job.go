package restore

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// Job is one store to bring up to date.
type Job struct {
	Name    string                 // of the store
	Part    session.TopicPartition // its changelog
	TopicID [16]byte               // of the changelog as it is now
	Image   state.Image
	Options state.OverlayOptions

	// End is up to where the store goes, exclusive. With Follow it is where the
	// log ended when the job was prepared, and the store goes on behind it.
	End int64
	// Follow makes a copy, which is never complete. Bound is up to where it may
	// go, as far as is known yet: a source topic that serves as changelog has
	// records that its group has not committed, and they belong to no store.
	// It may be raised at any time between two steps.
	Follow bool
	Bound  int64

	// Row turns a record into the row it stands for; nil means that key and
	// value are the row. ok is false for records that leave no trace.
	Row func(*session.Record) (key, value []byte, ok bool)

	// Tombstones is how long the log keeps them at least; 0 is for ever.
	Tombstones time.Duration

	// Overlay is the store over its image; complete when the job is done.
	Overlay *state.Overlay

	// Restored and Bytes count what was read, Rebuilt says why the store had to
	// begin from nothing, "" when it had not.
	Restored, Bytes int64
	Rebuilt         string

	feed  *session.Feed
	start int64 // of the log
	err   error
	done  bool
	// broken: the error is that of the image, not of the reading.
	broken bool
}

// Panic is the error of a job whose Row has panicked: code of the user's, a serde for
// instance.
type Panic struct {
	Value any
	Stack []byte
}

// Error says what was thrown.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Unbounded is the Bound of a copy that may read all that is committed.
const Unbounded = int64(1)<<62 - 1

// batchBytes is how much a restore collects before it writes to the image.
const batchBytes = 1 << 20

// Done reports that the store is complete.
func (j *Job) Done() bool { return j.done }

// Err is what ended the job early. session.ErrOutOfRange is cured by preparing it
// again.
func (j *Job) Err() error { return j.err }

// Position is up to where the store is.
func (j *Job) Position() int64 {
	if j.feed != nil {
		return min(j.feed.Position(), j.limit())
	}
	return j.from()
}

// Remaining is how many offsets are still to be read, as far as is known; of a
// copy, how far it is behind what is committed.
func (j *Job) Remaining() int64 {
	end := j.End
	if j.Follow {
		if j.feed != nil {
			end = max(end, j.feed.End())
		}
		end = min(end, j.limit())
	}
	return max(end-j.Position(), 0)
}

// limit is the first offset that the store does not take.
func (j *Job) limit() int64 {
	if j.Follow {
		return j.Bound
	}
	return j.End
}

func (j *Job) from() int64 {
	if p := j.Overlay.Position(); p.Known() {
		return p.Next
	}
	return j.start
}

// drain applies up to budget records that have arrived; more reports that some are
// left.
func (j *Job) drain(budget int) (more bool) {
	if j.feed == nil || j.done || j.err != nil {
		return false
	}
	defer func() {
		if v := recover(); v != nil {
			j.fail(&Panic{Value: v, Stack: debug.Stack()})
			more = false
		}
	}()
	limit := j.limit()
	for range budget {
		r, ok := j.feed.Head()
		if !ok || r.Offset >= limit {
			j.fail(j.pause(ok))
			return false
		}
		err := j.apply(r)
		j.feed.Pop()
		j.Restored++
		j.Bytes += int64(len(r.Key) + len(r.Value))
		if err == nil && j.Overlay.Size() >= batchBytes {
			err = j.settle(j.Position(), true)
		}
		if err != nil {
			j.fail(err)
			return false
		}
	}
	return true
}

// dry reports that the job can go on only with the next fetch.
func (j *Job) dry() bool {
	if j.feed == nil || j.done || j.err != nil {
		return false
	}
	_, ok := j.feed.Head()
	return !ok
}

// fail notes an error of the store: nothing is written to it any more.
func (j *Job) fail(err error) {
	if err != nil {
		j.err, j.broken, j.done = err, true, false
	}
}

// pause is where nothing more can be read for now: at the end, which completes
// the job, or before the next fetch.
func (j *Job) pause(head bool) error {
	if j.Follow {
		if j.Overlay.Dirty() {
			if err := j.settle(j.Position(), false); err != nil {
				return err
			}
		}
	} else if head || j.feed.Position() >= j.End {
		j.done = true
		return j.settle(j.End, true)
	}
	if err := j.feed.Err(); err != nil {
		j.err = fmt.Errorf("restore of store %s: %w", j.Name, err)
	}
	return nil
}

func (j *Job) apply(r *session.Record) error {
	key, value, ok := r.Key, r.Value, true
	if j.Row != nil {
		key, value, ok = j.Row(r)
	}
	switch {
	case !ok:
		return nil
	case value == nil:
		return j.Overlay.Delete(key)
	}
	return j.Overlay.Put(key, value)
}

// settle makes what was applied part of the store, with its position; flushed, of
// the image.
func (j *Job) settle(next int64, flush bool) error {
	p := state.Position{TopicID: j.TopicID, Next: next, LeaderEpoch: j.feed.LeaderEpoch(), TimeMs: time.Now().UnixMilli()}
	if old := j.Overlay.Position(); p.LeaderEpoch < 0 && old.Known() {
		p.LeaderEpoch = old.LeaderEpoch
	}
	if err := j.Overlay.Commit(p); err != nil || !flush {
		return err
	}
	return j.Overlay.Flush()
}
