package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// ErrLive reports an application that cannot be reset because a process works on it
// or has its place kept.
var ErrLive = errors.New("the application is live")

// From is where an application begins to read its inputs again.
type From struct {
	// Latest begins at the end. At begins with the first record of that time or a
	// later one, unless it is zero. Without either, reading begins at the start.
	Latest bool
	At     time.Time
}

// Reset is what a reset will do. It does nothing until it is applied.
type Reset struct {
	App string `json:"app"`
	// Offsets are set for the inputs, in order of topic and partition.
	Offsets []NewOffset `json:"offsets"`
	// Topics are deleted, with all state in them.
	Topics []string `json:"deletedTopics"`

	inspector *Inspector
}

// NewOffset is where an input will be read from.
type NewOffset struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Was       int64  `json:"was"` // -1: none
	At        int64  `json:"at"`
}

// PlanReset finds out what a reset of an application would do: its inputs are read
// again from somewhere, its internal topics and with them its state are gone. It
// refuses with ErrLive while the application has members.
func (i *Inspector) PlanReset(ctx context.Context, id string, from From) (*Reset, error) {
	if err := i.idle(ctx, id); err != nil {
		return nil, err
	}
	d, err := i.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	a, err := i.Application(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &Reset{App: id, Topics: a.Internal, inspector: i}
	parts, err := i.parts(ctx, d.inputs()...)
	if err != nil || len(parts) == 0 {
		return r, err
	}
	offsets, err := i.committed(ctx, id, parts)
	if err != nil {
		return nil, err
	}
	at, err := i.from(ctx, from, parts)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		r.Offsets = append(r.Offsets, NewOffset{Topic: p.Topic, Partition: p.Partition, Was: offsets[p].Next, At: at[p]})
	}
	return r, nil
}

// from finds where reading begins again.
func (i *Inspector) from(ctx context.Context, from From, parts []session.TopicPartition) (map[session.TopicPartition]int64, error) {
	switch {
	case from.Latest:
		return i.bounds(ctx, session.StableEnd, parts)
	case from.At.IsZero():
		return i.bounds(ctx, session.Start, parts)
	}
	var topics []string
	for _, p := range parts {
		topics = append(topics, p.Topic)
	}
	listed, err := i.admin.ListOffsetsAfterMilli(ctx, from.At.UnixMilli(), slices.Compact(topics)...)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("inspect: offsets of %v: %w", from.At, err)
	}
	at := map[session.TopicPartition]int64{}
	for _, p := range parts {
		o, ok := listed.Lookup(p.Topic, p.Partition)
		if !ok {
			return nil, fmt.Errorf("inspect: no offset of %v for %s/%d", from.At, p.Topic, p.Partition)
		}
		at[p] = o.Offset
	}
	return at, nil
}

// inputs are the topics of others that an application reads, global tables not
// included, which have no offsets.
func (d Description) inputs() []string {
	var names []string
	for _, s := range d.stored.Picture.Subs {
		for _, n := range s.Nodes {
			if n.From != "" && !n.Inner {
				names = append(names, n.From)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// idle refuses an application with members.
func (i *Inspector) idle(ctx context.Context, id string) error {
	groups, err := i.admin.DescribeGroups(ctx, id)
	if err != nil {
		return fmt.Errorf("inspect: describe group %s: %w", id, err)
	}
	if g, ok := groups[id]; ok && g.Err == nil && len(g.Members) > 0 {
		return fmt.Errorf("%w: group %s has %d members; stop all processes of it first (one that was killed keeps its place for its session timeout)", ErrLive, id, len(g.Members))
	}
	return nil
}

// Apply carries the reset out: the description says first that there is no state,
// then the internal topics go, then the offsets are set. When it breaks off midway
// it can be done again.
func (r *Reset) Apply(ctx context.Context) error {
	i := r.inspector
	if err := i.idle(ctx, r.App); err != nil {
		return err
	}
	d, err := i.Describe(ctx, r.App)
	if err != nil {
		return err
	}
	// The picture stays: it says which topics a second try has to delete.
	raw, err := topology.Stored{Reset: true, Picture: d.stored.Picture}.Encode()
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	record := &kgo.Record{Topic: topology.DescriptionTopic(r.App), Key: []byte(topology.DescriptionKey), Value: raw}
	if err := i.client.ProduceSync(ctx, record).FirstErr(); err != nil {
		return fmt.Errorf("inspect: write topic %s: %w", record.Topic, err)
	}
	if len(r.Topics) > 0 {
		deleted, err := i.admin.DeleteTopics(ctx, r.Topics...)
		if err == nil {
			err = deleted.Error()
		}
		if err != nil {
			return fmt.Errorf("inspect: delete topics of %s: %w", r.App, err)
		}
		if err := i.gone(ctx, r.Topics); err != nil {
			return err
		}
	}
	// The whole group goes, with offsets of topics that are no more.
	if _, err := i.admin.DeleteGroup(ctx, r.App); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("inspect: delete group %s: %w", r.App, err)
	}
	if len(r.Offsets) == 0 {
		return nil
	}
	offsets := kadm.Offsets{}
	for _, o := range r.Offsets {
		offsets.AddOffset(o.Topic, o.Partition, o.At, -1)
	}
	if err := i.admin.CommitAllOffsets(ctx, r.App, offsets); err != nil {
		return fmt.Errorf("inspect: commit offsets of group %s: %w", r.App, err)
	}
	return nil
}

// gone waits until topics are deleted, which brokers do after they have answered: a
// start that came first would find them.
func (i *Inspector) gone(ctx context.Context, topics []string) error {
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		left, err := i.parts(ctx, topics...)
		if err != nil || len(left) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("inspect: topics %v are not gone: %w", topics, ctx.Err())
		case <-time.After(pause):
		}
	}
}
