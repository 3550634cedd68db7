package runtime

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/txn/session"
)

// ErrLostOffsets reports that the group's committed offsets are gone although
// the application's stores hold what it has processed: they expired while
// nothing ran, or were deleted. To read the inputs once more would count them
// twice.
var ErrLostOffsets = errors.New("streams: committed offsets are missing")

// checkOffsets wants a task with rows in a changelog to have a committed offset.
// Both come with the same transaction, so one without the other was lost.
//
// The order of the questions matters while other processes of the application
// start or run: a record that was committed is seen first, and the offsets that
// were committed with it are asked for after that, stable ones. The first look
// only clears tasks of suspicion, so it waits for nobody's open transaction.
func (p *preparer) checkOffsets(ctx context.Context, pl *plan) error {
	suspects, err := p.withoutOffsets(ctx, pl, pl.loggedTasks(), p.cluster.PastOffsets)
	if err != nil || len(suspects) == 0 {
		return err
	}
	written, err := p.written(ctx, pl, suspects)
	if err != nil || len(written) == 0 {
		return err
	}
	lost, err := p.withoutOffsets(ctx, pl, written, p.cluster.CommittedOffsets)
	if err != nil || len(lost) == 0 {
		return err
	}
	id, log := lost[0], pl.changelogs(lost[0])[0]
	return fmt.Errorf("%w: group %s has none for the inputs of task %s/%d (tasks like it: %d), but its changelog %s/%d is in use; "+
		"commit the offsets of that time to the group, or delete the changelogs of the application to begin anew",
		ErrLostOffsets, p.app.AppID, p.app.Subs[id.sub].Name, id.unit, len(lost), log.Topic, log.Partition)
}

// loggedTasks lists the tasks that have a changelog of their own.
func (p *plan) loggedTasks() []taskID {
	var ids []taskID
	for i, sub := range p.app.Subs {
		for unit := range p.counts.Tasks[sub.Name] {
			if id := (taskID{sub: i, unit: unit}); len(p.changelogs(id)) > 0 {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// changelogs lists what a task writes its stores to; a source topic that serves
// as one is none of them.
func (p *plan) changelogs(id taskID) []session.TopicPartition {
	var logs []session.TopicPartition
	for _, s := range p.app.Subs[id.sub].Stores {
		if s.Changelog != "" && s.FromSource == nil {
			logs = append(logs, session.TopicPartition{Topic: s.Changelog, Partition: id.unit})
		}
	}
	return logs
}

// withoutOffsets keeps the tasks none of whose inputs has an offset, as ask
// knows it.
func (p *preparer) withoutOffsets(ctx context.Context, pl *plan, ids []taskID,
	ask func(context.Context, string, []session.TopicPartition) (session.Offsets, error)) ([]taskID, error) {
	var inputs []session.TopicPartition
	for _, id := range ids {
		inputs = append(inputs, pl.inputs(id)...)
	}
	offsets, err := ask(ctx, p.app.AppID, inputs)
	if err != nil {
		return nil, err
	}
	var without []taskID
	for _, id := range ids {
		known := false
		for _, part := range pl.inputs(id) {
			known = known || offsets[part].Next >= 0
		}
		if !known {
			without = append(without, id)
		}
	}
	return without, nil
}

// written keeps the tasks with a committed record in a changelog.
func (p *preparer) written(ctx context.Context, pl *plan, ids []taskID) ([]taskID, error) {
	var logs []session.TopicPartition
	for _, id := range ids {
		logs = append(logs, pl.changelogs(id)...)
	}
	starts, err := p.cluster.List(ctx, session.Start, logs)
	if err != nil {
		return nil, err
	}
	ends, err := p.cluster.List(ctx, session.StableEnd, logs)
	if err != nil {
		return nil, err
	}
	reader := p.cluster.NewReader(session.ReaderOptions{})
	defer reader.Close()
	var found []taskID
	for _, id := range ids {
		for _, log := range pl.changelogs(id) {
			any, err := firstRecord(ctx, reader, log, starts[log], ends[log])
			if err != nil {
				return nil, err
			}
			if any {
				found = append(found, id)
				break
			}
		}
	}
	return found, nil
}

// firstRecord tells whether a committed record lies in a range of offsets whose
// end is stable.
func firstRecord(ctx context.Context, reader *session.Reader, part session.TopicPartition, from, to int64) (bool, error) {
	if from >= to {
		return false, nil
	}
	feed := reader.Add(part, from)
	defer reader.Remove(feed)
	for {
		if r, ok := feed.Head(); ok {
			return r.Offset < to, nil
		}
		if feed.Position() >= to {
			return false, nil
		}
		if err := feed.Err(); err != nil {
			return false, fmt.Errorf("streams: look for records in %s/%d: %w", part.Topic, part.Partition, err)
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-reader.Arrived():
		}
	}
}
