package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/streams/internal/restore"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// takeover makes tasks ready to run. The order of its steps is what makes it
// safe; see the package comment.
type takeover struct {
	w       *worker
	ids     []taskID
	topics  map[string]session.Topic         // as they are now
	offsets session.Offsets                  // of all inputs
	ends    map[session.TopicPartition]int64 // of all changelogs
	opened  []*opened
}

// opened is a store whose image is open.
type opened struct {
	id      taskID
	spec    *topology.Store
	image   state.Image
	release func()
	job     *restore.Job
}

// takeOver opens tasks. When it fails, or ctx ends, nothing of it stays open.
func (w *worker) takeOver(ctx context.Context, ids []taskID) ([]*active, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	t := &takeover{w: w, ids: ids}
	if err := t.ask(ctx); err != nil {
		return nil, err
	}
	err := t.openStores(ctx)
	if err == nil {
		err = t.restore(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, t.abandon())
	}
	return t.start(ctx)
}

// ask learns whether the topics are still the same, where the group is, and then
// where the changelogs end.
func (t *takeover) ask(ctx context.Context) error {
	p := t.w.plan
	var inputs, logs []session.TopicPartition
	for _, id := range t.ids {
		inputs = append(inputs, p.inputs(id)...)
		for i := range p.app.Subs[id.sub].Stores {
			if s := &p.app.Subs[id.sub].Stores[i]; s.Changelog != "" && s.FromSource == nil {
				logs = append(logs, session.TopicPartition{Topic: s.Changelog, Partition: id.unit})
			}
		}
	}
	var err error
	if t.topics, err = t.w.checkTopics(ctx); err != nil {
		return err
	}
	if t.offsets, err = t.w.cluster.CommittedOffsets(ctx, p.app.AppID, inputs); err != nil {
		return err
	}
	t.ends, err = t.w.cluster.List(ctx, session.End, logs)
	return err
}

// checkTopics reads the topics' metadata and wants them to be the ones that the
// plan was made for.
func (w *worker) checkTopics(ctx context.Context) (map[string]session.Topic, error) {
	names := slices.Sorted(maps.Keys(w.plan.topics))
	now, err := w.cluster.Topics(ctx, names...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if t, ok := now[name]; ok && t.ID == w.plan.topics[name].ID {
			continue
		}
		err := session.ErrRecreated
		if w.plan.internal(name) {
			err = ErrMissingTopic
		}
		return nil, fmt.Errorf("%w: %s is not the topic that it was when the application started", err, name)
	}
	return now, nil
}

// openStores opens the images.
func (t *takeover) openStores(ctx context.Context) error {
	for _, id := range t.ids {
		sub := &t.w.plan.app.Subs[id.sub]
		for i := range sub.Stores {
			o := &opened{id: id, spec: &sub.Stores[i], release: func() {}}
			if o.spec.InMemory || t.w.folder == nil {
				o.image = state.NewMemory()
			} else {
				img, release, err := t.w.folder.OpenStore(ctx, o.spec.Name, id.unit)
				if err != nil {
					return err
				}
				o.image, o.release = img, release
			}
			t.opened = append(t.opened, o)
		}
	}
	return nil
}

// restore brings all stores to where the group is.
func (t *takeover) restore(ctx context.Context) error {
	p := t.w.plan
	var jobs []*restore.Job
	for _, o := range t.opened {
		part := session.TopicPartition{Topic: o.spec.Changelog, Partition: o.id.unit}
		j := &restore.Job{
			Name: o.spec.Name, Part: part, Image: o.image, Options: t.w.options.Store,
			TopicID: p.topics[part.Topic].ID, Tombstones: p.tombstones[part.Topic],
		}
		o.job = j
		switch {
		case o.spec.Changelog == "":
			// Nothing remembers this store but itself, and it may hold less or
			// more than the group has committed: it begins empty.
			if err := o.image.Wipe(); err != nil {
				return err
			}
			j.Overlay = state.NewOverlay(o.image, t.w.options.Store)
			continue
		case o.spec.FromSource != nil:
			j.Row = rowOf(o.spec.FromSource)
			j.End = max(t.offsets[part].Next, 0)
		default:
			j.End = t.ends[part]
		}
		jobs = append(jobs, j)
	}
	if err := restore.Run(ctx, t.w.cluster, jobs, t.w.log); err != nil {
		return err
	}
	for _, j := range jobs {
		t.w.log.Info("store is restored", "store", j.Name, "task", j.Part.Partition, "records", j.Restored, "position", j.End)
	}
	return nil
}

// rowOf adapts a table's conversion to what a restore reads.
func rowOf(convert func(*task.Record) (key, value []byte, ok bool)) func(*session.Record) (key, value []byte, ok bool) {
	var r task.Record
	return func(s *session.Record) ([]byte, []byte, bool) {
		r = task.Record{
			Topic: s.Topic, Partition: s.Partition, Offset: s.Offset, LeaderEpoch: s.LeaderEpoch,
			TimeMs: s.Time.UnixMilli(), Key: s.Key, Value: s.Value, Headers: r.Headers[:0],
		}
		for _, h := range s.Headers {
			r.Headers = append(r.Headers, task.Header(h))
		}
		return convert(&r)
	}
}

// abandon closes what was opened, without a write.
func (t *takeover) abandon() error {
	var errs []error
	for _, o := range t.opened {
		errs = append(errs, o.image.Close())
		o.release()
	}
	return errors.Join(errs...)
}

// start makes the tasks and lets their inputs flow.
func (t *takeover) start(ctx context.Context) ([]*active, error) {
	fresh, err := t.fresh(ctx)
	if err != nil {
		return nil, errors.Join(err, t.abandon())
	}
	var tasks []*active
	for _, id := range t.ids {
		a := t.assemble(id, fresh)
		tasks = append(tasks, a)
		if err := t.w.instantiate(a, t.progress(a)); err != nil {
			for _, a := range tasks {
				err = errors.Join(err, a.drop(t.w.reader))
			}
			return nil, errors.Join(err, t.abandonOthers(tasks))
		}
	}
	return tasks, nil
}

// abandonOthers closes the stores of tasks that were not assembled.
func (t *takeover) abandonOthers(tasks []*active) error {
	done := map[taskID]bool{}
	for _, a := range tasks {
		done[a.id] = true
	}
	var rest []*opened
	for _, o := range t.opened {
		if !done[o.id] {
			rest = append(rest, o)
		}
	}
	t.opened = rest
	return t.abandon()
}

// fresh finds where to begin the inputs without a committed offset.
func (t *takeover) fresh(ctx context.Context) (map[session.TopicPartition]int64, error) {
	all := map[session.TopicPartition]int64{}
	for _, latest := range []bool{false, true} {
		var parts []session.TopicPartition
		for part, o := range t.offsets {
			if o.Next < 0 && t.w.plan.latest(part.Topic) == latest {
				parts = append(parts, part)
			}
		}
		if len(parts) == 0 {
			continue
		}
		bound := session.Start
		if latest {
			bound = session.StableEnd
		}
		found, err := t.w.cluster.List(ctx, bound, parts)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, found)
	}
	return all, nil
}

// progress is what the task told at its last commit.
func (t *takeover) progress(a *active) []string {
	var all []string
	for _, in := range a.inputs {
		all = append(all, t.offsets[in.topic].Metadata)
	}
	return all
}

// assemble puts a task together, without its user code.
func (t *takeover) assemble(id taskID, fresh map[session.TopicPartition]int64) *active {
	p := t.w.plan
	sub := &p.app.Subs[id.sub]
	a := &active{id: id, sub: sub}
	for _, src := range sub.Sources {
		part := session.TopicPartition{Topic: src.Topic, Partition: id.unit}
		if int(id.unit) >= len(p.topics[src.Topic].Partitions) {
			continue
		}
		at := t.offsets[part].Next
		if at < 0 {
			at = fresh[part]
		}
		a.inputs = append(a.inputs, &input{
			timed: src.Timed, timedAt: -1,
			topic: part, internal: src.Internal, committed: at, known: t.offsets[part].Next >= 0, feed: t.w.reader.Add(part, at),
		})
	}
	for _, o := range t.opened {
		if o.id != id {
			continue
		}
		s := &store{
			spec: o.spec, overlay: o.job.Overlay, release: o.release,
			part: o.job.Part, topicID: o.job.TopicID, epoch: epochOf(t.topics, o.job.Part),
		}
		if o.spec.FromSource != nil {
			for _, in := range a.inputs {
				if in.topic == s.part {
					s.source = in
				}
			}
		}
		a.stores = append(a.stores, s)
	}
	return a
}

// instantiate makes the user's part of a task.
func (w *worker) instantiate(a *active, progress []string) error {
	ctx, cancel := context.WithCancel(w.ctx)
	a.cancel = cancel
	var out session.Record
	env := task.Env{
		AppID: w.plan.app.AppID, Partition: a.id.unit, Progress: progress,
		Store: func(name string) (state.Store, error) { return w.store(a, name) }, Context: ctx, Wait: w.wait,
		Now:    func() int64 { return time.Now().UnixMilli() },
		Commit: func() { w.asked = true },
		Emit: func(o *task.Out) error {
			out.Topic, out.Partition, out.Time = o.Topic, o.Partition, time.UnixMilli(o.TimeMs)
			out.Key, out.Value = o.Key, o.Value
			out.Headers = out.Headers[:0]
			for _, h := range o.Headers {
				out.Headers = append(out.Headers, session.Header(h))
			}
			return w.producer.Send(w.life, &out, nil)
		},
	}
	var err error
	if a.task, err = a.sub.New(env); err != nil {
		return fmt.Errorf("streams: task %s/%d: %w", a.sub.Name, a.id.unit, err)
	}
	return nil
}

// wait pauses user code between retries, not beyond the open transaction: past
// its deadline everything is done again from the last commit, in a new one.
func (w *worker) wait(ctx context.Context, d time.Duration) error {
	if deadline, open := w.producer.Deadline(); open && time.Now().Add(d).After(deadline) {
		return fmt.Errorf("%w: a retry after %v would outlive the transaction", session.ErrAborted, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.member.Changed():
		return fmt.Errorf("%w: the group is rebalancing", session.ErrAborted)
	}
}
