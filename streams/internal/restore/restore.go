// Package restore brings stores up to date from their changelogs before their
// tasks process anything.
//
// The caller has asked, in this order, for the group's stable offsets and then
// for the end of each changelog, undecided records included. Whatever a former
// owner managed to commit lies before that end; whatever it left undecided does
// too, and is decided when a committed reader passes it. So a store is complete
// when a committed reader has reached the end, and not earlier.
//
// A restore continues from the position in the store. It begins from nothing
// when that position does not belong to this log: another topic id, an epoch
// that ended earlier (the log lost its tail and grew again), an end or a start
// on the wrong side. It also begins from nothing when the store was away for
// longer than the log keeps its tombstones, because rows deleted meanwhile
// would never be seen to go.
//
// Stopping a restore at any point leaves stores that obey the rule of package
// state: contents and position belong together.
package restore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// Job is one store to bring up to date.
type Job struct {
	Name    string                 // of the store
	Part    session.TopicPartition // its changelog
	TopicID [16]byte               // of the changelog as it is now
	End     int64                  // up to where, exclusive
	Image   state.Image
	Options state.OverlayOptions

	// Row turns a record into the row it stands for; nil means that key and
	// value are the row. ok is false for records that leave no trace.
	Row func(*session.Record) (key, value []byte, ok bool)

	// Tombstones is how long the log keeps them at least; 0 is for ever.
	Tombstones time.Duration

	// Overlay is the result: the store over its image, complete.
	Overlay *state.Overlay

	// Restored counts the records read, Rebuilt says why the store had to
	// begin from nothing, "" when it had not.
	Restored int64
	Rebuilt  string

	feed  *session.Feed
	start int64 // of the log
}

// batchBytes is how much a restore collects before it writes to the image.
const batchBytes = 1 << 20

// Run brings every job's store to its end. When ctx ends first the stores are
// usable for a later restore; the images stay the caller's to close.
func Run(ctx context.Context, cluster *session.Cluster, jobs []*Job, log *slog.Logger) error {
	if len(jobs) == 0 {
		return nil
	}
	if err := starts(ctx, cluster, jobs); err != nil {
		return err
	}
	reader := cluster.NewReader(session.ReaderOptions{})
	defer reader.Close()
	for _, j := range jobs {
		if err := j.prepare(ctx, cluster); err != nil {
			return err
		}
		if j.Rebuilt != "" {
			log.Warn("store is rebuilt from its changelog", "store", j.Name, "topic", j.Part.Topic, "partition", j.Part.Partition, "reason", j.Rebuilt)
		}
		if from := j.from(); from < j.End {
			j.feed = reader.Add(j.Part, from)
		}
	}
	return read(ctx, reader, jobs, log)
}

func starts(ctx context.Context, cluster *session.Cluster, jobs []*Job) error {
	parts := make([]session.TopicPartition, len(jobs))
	for i, j := range jobs {
		parts[i] = j.Part
	}
	found, err := cluster.List(ctx, session.Start, parts)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		j.start = found[j.Part]
	}
	return nil
}

func (j *Job) from() int64 {
	if p := j.Overlay.Position(); p.Known() {
		return p.Next
	}
	return j.start
}

// prepare decides whether the image can be continued.
func (j *Job) prepare(ctx context.Context, cluster *session.Cluster) error {
	p := j.Image.Position()
	if p.Known() {
		why, err := j.misfit(ctx, cluster, p)
		if err != nil {
			return err
		}
		if why != "" {
			if err := j.Image.Wipe(); err != nil {
				return err
			}
			j.Rebuilt = why
		}
	}
	options := j.Options
	options.Name = j.Name
	j.Overlay = state.NewOverlay(j.Image, options)
	return nil
}

// misfit says why the position does not belong to the log, "" when it does.
func (j *Job) misfit(ctx context.Context, cluster *session.Cluster, p state.Position) (string, error) {
	switch {
	case p.TopicID != j.TopicID:
		return "the topic was deleted and made anew", nil
	case p.Next > j.End:
		return fmt.Sprintf("the log ends at %d, before the store's position %d", j.End, p.Next), nil
	case p.Next < j.start:
		return fmt.Sprintf("the log starts at %d, after the store's position %d", j.start, p.Next), nil
	case j.Tombstones > 0 && p.Next < j.End && age(p) > j.Tombstones:
		return fmt.Sprintf("the store is older than the tombstones of the log, which are kept for %v", j.Tombstones), nil
	case p.LeaderEpoch < 0:
		return "", nil
	}
	end, err := cluster.EpochEnd(ctx, j.Part, p.LeaderEpoch)
	if err != nil {
		return "", err
	}
	if end < p.Next {
		return fmt.Sprintf("epoch %d of the log ended at %d, before the store's position %d", p.LeaderEpoch, end, p.Next), nil
	}
	return "", nil
}

func age(p state.Position) time.Duration { return time.Since(time.UnixMilli(p.TimeMs)) }

// read drains the feeds until each job has reached its end.
func read(ctx context.Context, reader *session.Reader, jobs []*Job, log *slog.Logger) error {
	slow := time.NewTicker(10 * time.Second)
	defer slow.Stop()
	for {
		open := 0
		for _, j := range jobs {
			done, err := j.drain()
			if err != nil {
				return err
			}
			if !done {
				open++
			}
		}
		if open == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), flush(jobs))
		case <-reader.Arrived():
		case <-slow.C:
			report(jobs, log)
		}
	}
}

// report says what a restore is waiting for.
func report(jobs []*Job, log *slog.Logger) {
	for _, j := range jobs {
		if j.feed != nil {
			log.Info("restoring", "store", j.Name, "topic", j.Part.Topic, "partition", j.Part.Partition,
				"at", j.feed.Position(), "end", j.End, "stable", j.feed.End())
		}
	}
}

// flush keeps what an interrupted restore has read.
func flush(jobs []*Job) error {
	var errs []error
	for _, j := range jobs {
		if j.feed != nil {
			errs = append(errs, j.settle(j.feed.Position()))
		}
	}
	return errors.Join(errs...)
}

// drain applies what has arrived and reports whether the end is reached.
func (j *Job) drain() (done bool, err error) {
	if j.feed == nil {
		return true, nil
	}
	for {
		r, ok := j.feed.Head()
		if !ok {
			break
		}
		if r.Offset >= j.End {
			return true, j.finish(j.End)
		}
		if err := j.apply(r); err != nil {
			return false, err
		}
		j.feed.Pop()
		j.Restored++
		if j.Overlay.Size() >= batchBytes {
			if err := j.settle(j.feed.Position()); err != nil {
				return false, err
			}
		}
	}
	if j.feed.Position() >= j.End {
		return true, j.finish(j.End)
	}
	if err := j.feed.Err(); err != nil {
		return false, fmt.Errorf("restore of store %s: %w", j.Name, err)
	}
	return false, nil
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

// settle makes what was applied part of the image, with its position.
func (j *Job) settle(next int64) error {
	p := state.Position{TopicID: j.TopicID, Next: min(next, j.End), LeaderEpoch: j.feed.LeaderEpoch(), TimeMs: time.Now().UnixMilli()}
	if old := j.Overlay.Position(); p.LeaderEpoch < 0 && old.Known() {
		p.LeaderEpoch = old.LeaderEpoch
	}
	if err := j.Overlay.Commit(p); err != nil {
		return err
	}
	return j.Overlay.Flush()
}

func (j *Job) finish(next int64) error {
	err := j.settle(next)
	j.feed = nil
	return err
}
