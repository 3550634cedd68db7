package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// errCrash marks the end of a run that OnStep asked for.
var errCrash = errors.New("streams: run ended by OnStep")

// step calls the hook, if there is one.
func (w *worker) step(s session.Step) error {
	if w.options.OnStep == nil {
		return nil
	}
	if err := w.options.OnStep(w.number, s); err != nil {
		return fmt.Errorf("%w: %s: %w", errCrash, s, err)
	}
	return nil
}

// commit makes everything since the last commit visible at once, and then lets
// the stores accept it. An error leaves the tasks of no use.
func (w *worker) commit(ctx context.Context) error {
	w.committed, w.asked = time.Now(), false
	for _, a := range w.tasks {
		if err := a.task.Flush(); err != nil {
			return err
		}
	}
	offsets := w.offsets()
	if len(offsets) == 0 && w.producer.Sent() == 0 {
		return nil
	}
	if err := w.step(StepLog); err != nil {
		return err
	}
	w.refreshEpochs(ctx)
	if err := w.begin(ctx); err != nil {
		return err
	}
	// Without a transaction a changelog is never ahead of the outputs: a task that
	// finds in its store that it has seen a record would not send again what was
	// lost (KAFKA-12508).
	if err := w.producer.Flush(ctx); err != nil {
		return err
	}
	if err := w.log2changelogs(ctx); err != nil {
		return err
	}
	sent := w.producer.Sent()
	if err := w.producer.Commit(ctx, offsets, w.joined.Generation); err != nil {
		return err
	}
	if err := w.settle(); err != nil {
		return err
	}
	w.failures = 0
	w.measured(w.committed)
	w.progress.Emitted += sent
	w.progress.Commits++
	w.progress.Tasks = len(w.tasks)
	if w.options.OnProgress != nil {
		w.progress.Dropped = w.dropped()
		w.options.OnProgress(w.progress)
	}
	w.purge.offer(w.tasks)
	return nil
}

// begin makes the positions where tasks have begun known to the group before anything
// is in their changelogs. Within a transaction both come together; at least once the
// changelogs come first, and one in use without offsets would be taken for lost
// offsets at the next start.
func (w *worker) begin(ctx context.Context) error {
	if w.options.Guarantee != session.AtLeastOnce {
		return nil
	}
	starts := session.Offsets{}
	for _, a := range w.tasks {
		for _, in := range a.inputs {
			if !in.known {
				starts[in.topic] = session.Offset{Next: in.committed, LeaderEpoch: -1}
				in.known = true // or else the commit fails, and the task with it
			}
		}
	}
	return w.producer.Mark(ctx, starts, w.joined.Generation)
}

// offsets lists the positions that have moved, each with its task's progress. A
// task's first commit has them all, moved or not: from then on offsets that are
// missing are offsets that were lost.
func (w *worker) offsets() session.Offsets {
	var offsets session.Offsets
	for _, a := range w.tasks {
		if !a.tells() {
			continue
		}
		if offsets == nil {
			offsets = session.Offsets{}
		}
		// What a timer has changed moves no input: the progress goes with all.
		progress, moved := a.task.Progress(), a.dirty()
		for _, in := range a.inputs {
			if at := in.feed.Position(); at != in.committed || !in.known || !moved {
				offsets[in.topic] = session.Offset{Next: at, LeaderEpoch: in.feed.LeaderEpoch(), Metadata: progress}
			}
		}
	}
	return offsets
}

// epochInterval is how often the leader epochs of the changelogs are asked for.
const epochInterval = 30 * time.Second

// refreshEpochs keeps the epochs that positions are stored with close to the
// truth. They are asked for before the records they are stored with are sent, so
// they are never newer than those; an older one can at worst make a restart
// rebuild a store that was sound.
func (w *worker) refreshEpochs(ctx context.Context) {
	if time.Since(w.epochsAt) < epochInterval {
		return
	}
	w.epochsAt = time.Now()
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	topics, err := w.checkTopics(bounded)
	if err != nil {
		w.log.Warn("leader epochs of the changelogs", "error", err)
		return
	}
	for _, a := range w.tasks {
		for _, s := range a.stores {
			if s.spec.Changelog != "" {
				s.epoch = max(s.epoch, epochOf(topics, s.part))
			}
		}
	}
}

// log2changelogs sends what each store has changed.
func (w *worker) log2changelogs(ctx context.Context) error {
	var r session.Record
	for _, a := range w.tasks {
		for _, s := range a.stores {
			if s.source != nil || s.spec.Changelog == "" {
				continue
			}
			r.Topic, r.Partition = s.part.Topic, s.part.Partition
			err := s.overlay.Log(func(key, value []byte) error {
				r.Key, r.Value = key, value
				return w.producer.Send(ctx, &r, &s.ack)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// settle tells inputs and stores that the transaction is committed.
func (w *worker) settle() error {
	now := time.Now().UnixMilli()
	for _, a := range w.tasks {
		told := a.tells()
		for _, in := range a.inputs {
			in.known = in.known || told
			in.committed = in.feed.Position()
		}
		for _, s := range a.stores {
			if err := w.step(StepStore); err != nil {
				return err
			}
			if err := s.overlay.Commit(s.next(now)); err != nil {
				return err
			}
		}
		w.progress.Processed += a.made
		a.made = 0
		a.dropped = a.task.Dropped()
	}
	return w.step(StepStored)
}

// next is the position of a store after a commit.
func (s *store) next(nowMs int64) state.Position {
	p := s.overlay.Position()
	switch {
	case s.source != nil:
		if at := s.source.feed.Position(); at > p.Next || !p.Known() {
			epoch := s.source.feed.LeaderEpoch()
			if epoch < 0 {
				epoch = p.LeaderEpoch
				if !p.Known() {
					epoch = -1
				}
			}
			return state.Position{TopicID: s.topicID, Next: at, LeaderEpoch: epoch, TimeMs: nowMs}
		}
	case s.ack.Next() > p.Next:
		return state.Position{TopicID: s.topicID, Next: s.ack.Next(), LeaderEpoch: s.epoch, TimeMs: nowMs}
	}
	return p
}
