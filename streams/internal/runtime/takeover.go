package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/millrace/millrace/streams/internal/restore"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// takeover makes the stores of one task ready: to run it, or to keep a copy of them.
// The order of its steps is what makes it safe; see the package comment. It is the
// keeper's, but while its steps run they have it to themselves.
type takeover struct {
	plan    *plan
	cluster *session.Cluster
	folder  *state.Folder // nil without StateDir
	options state.OverlayOptions
	log     *slog.Logger

	id      taskID
	copy    bool                             // the task runs elsewhere
	topics  map[string]session.Topic         // as they are now
	offsets session.Offsets                  // of all inputs
	fresh   map[session.TopicPartition]int64 // where inputs without an offset begin
	ends    map[session.TopicPartition]int64 // of all changelogs
	opened  []*opened
}

// opened is a store whose image is open.
type opened struct {
	spec    *topology.Store
	image   state.Image
	release func()
	job     *restore.Job // nil before the first restore, and for a store that nothing remembers
	overlay *state.Overlay
}

// name is the task's.
func (t *takeover) name() string {
	return fmt.Sprintf("%s/%d", t.plan.app.Subs[t.id.sub].Name, t.id.unit)
}

// prepare does what may take its time: it asks the cluster, opens what is not open
// yet, and finds out how far each store is.
func (t *takeover) prepare(ctx context.Context) error {
	if err := t.ask(ctx); err != nil {
		return err
	}
	if err := t.open(ctx); err != nil {
		return err
	}
	return t.place(ctx)
}

// ask learns whether the topics are still the same, where the group is, and then
// where the changelogs end.
func (t *takeover) ask(ctx context.Context) error {
	inputs := t.plan.inputs(t.id)
	logs := t.plan.changelogs(t.id)
	var err error
	if t.topics, err = checkTopics(ctx, t.cluster, t.plan); err != nil {
		return err
	}
	if !t.copy || t.plan.fromSource(t.id) {
		if t.offsets, err = t.cluster.CommittedOffsets(ctx, t.plan.app.AppID, inputs); err != nil {
			return err
		}
	}
	if t.ends, err = t.cluster.List(ctx, session.End, logs); err != nil || t.copy {
		return err
	}
	t.fresh, err = t.begin(ctx)
	return err
}

// checkTopics reads the topics' metadata and wants them to be the ones that the
// plan was made for.
func checkTopics(ctx context.Context, cluster *session.Cluster, p *plan) (map[string]session.Topic, error) {
	names := slices.Sorted(maps.Keys(p.topics))
	now, err := cluster.Topics(ctx, names...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if t, ok := now[name]; ok && t.ID == p.topics[name].ID {
			continue
		}
		err := session.ErrRecreated
		if p.internal(name) {
			err = ErrMissingTopic
		}
		return nil, fmt.Errorf("%w: %s is not the topic that it was when the application started", err, name)
	}
	return now, nil
}

// open opens the images that are not open. A copy has only those that a changelog
// remembers.
func (t *takeover) open(ctx context.Context) error {
	sub := &t.plan.app.Subs[t.id.sub]
	for i := range sub.Stores {
		spec := &sub.Stores[i]
		if t.copy && spec.Changelog == "" || slices.ContainsFunc(t.opened, func(o *opened) bool { return o.spec == spec }) {
			continue
		}
		o := &opened{spec: spec, release: func() {}}
		if spec.InMemory || t.folder == nil {
			o.image = state.NewMemory()
		} else {
			img, release, err := t.folder.OpenStore(ctx, spec.Name, t.id.unit)
			if err != nil {
				return err
			}
			o.image, o.release = img, release
		}
		t.opened = append(t.opened, o)
	}
	return nil
}

func (t *takeover) overlayOptions(s *topology.Store) state.OverlayOptions {
	o := t.options
	o.Windowed = s.Windowed
	return o
}

// place makes a restore of each store, with where it begins and ends.
func (t *takeover) place(ctx context.Context) error {
	var jobs []*restore.Job
	for _, o := range t.opened {
		if o.spec.Changelog == "" {
			// Nothing remembers this store but itself, and it may hold less or
			// more than the group has committed: it begins empty.
			if err := o.image.Wipe(); err != nil {
				return err
			}
			o.overlay = state.NewOverlay(o.image, t.overlayOptions(o.spec))
			continue
		}
		part := session.TopicPartition{Topic: o.spec.Changelog, Partition: t.id.unit}
		o.job = &restore.Job{
			Name: o.spec.Name, Part: part, Image: o.image, Options: t.overlayOptions(o.spec), Follow: t.copy, Bound: restore.Unbounded,
			TopicID: t.plan.topics[part.Topic].ID, Tombstones: t.plan.tombstones[part.Topic], End: t.ends[part],
		}
		if o.spec.FromSource != nil {
			o.job.Row = rowOf(o.spec.FromSource)
			o.job.End = max(t.offsets[part].Next, 0)
			o.job.Bound = o.job.End
		}
		jobs = append(jobs, o.job)
	}
	if len(jobs) == 0 {
		return nil
	}
	return restore.Prepare(ctx, t.cluster, jobs, t.log)
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

// close closes what was opened. What a restore has read since it last wrote is lost,
// unless its job left the set before.
func (t *takeover) close() error {
	var errs []error
	for _, o := range t.opened {
		errs = append(errs, o.image.Close())
		o.release()
	}
	t.opened = nil
	return errors.Join(errs...)
}

// progress is what the task told at its last commit.
func (t *takeover) progress(a *active) []string {
	var all []string
	for _, in := range a.inputs {
		all = append(all, t.offsets[in.topic].Metadata)
	}
	return all
}

// assemble puts a task together, without its user code. From now on its stores are
// the task's.
func (t *takeover) assemble(reader *session.Reader) *active {
	p, id := t.plan, t.id
	sub := &p.app.Subs[id.sub]
	a := &active{id: id, sub: sub}
	for _, src := range sub.Sources {
		part := session.TopicPartition{Topic: src.Topic, Partition: id.unit}
		if int(id.unit) >= len(p.topics[src.Topic].Partitions) {
			continue
		}
		at := t.offsets[part].Next
		if at < 0 {
			at = t.fresh[part]
		}
		a.inputs = append(a.inputs, &input{
			timed: src.Timed, timedAt: -1,
			topic: part, internal: src.Internal, committed: at, known: t.offsets[part].Next >= 0, feed: reader.Add(part, at),
		})
	}
	for _, o := range t.opened {
		s := &store{spec: o.spec, overlay: o.overlay, release: o.release}
		if o.job != nil {
			s.overlay, s.part, s.topicID, s.epoch = o.job.Overlay, o.job.Part, o.job.TopicID, epochOf(t.topics, o.job.Part)
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
