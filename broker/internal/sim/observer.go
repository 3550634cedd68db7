package sim

import (
	"errors"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/partition"
)

// observer holds a view of every partition against the broker, after every step.
type observer struct {
	w     *world
	n     *node
	o     *oracle
	views map[place]*view
	// What is open, as of the image and the run that it was listed for.
	image   *metadata.Image
	run     int
	open    []opened
	missing bool // some are offline
}

// place is a partition of one incarnation of a topic.
type place struct {
	topic metadata.ID
	index int32
}

type opened struct {
	v *view
	p *partition.Partition
}

func newObserver(w *world, n *node, o *oracle) *observer {
	return &observer{w: w, n: n, o: o, views: map[place]*view{}}
}

// look checks every partition that is open.
func (b *observer) look() {
	if b.n.api == nil || b.n.disk.off || b.w.failure != nil {
		return
	}
	if im := b.n.api.Meta.Image(); im != b.image || b.run != b.n.runs || b.missing {
		b.list(im)
	}
	for _, one := range b.open {
		one.v.look(one.p, b.run)
	}
}

// list finds the open partitions. One that is offline is looked for again.
func (b *observer) list(im *metadata.Image) {
	b.image, b.run, b.open, b.missing = im, b.n.runs, b.open[:0], false
	for _, name := range im.Names() {
		t := im.Topic(name)
		for i := range t.Partitions {
			p, err := b.n.api.Replicas.GetByID(t.ID, int32(i))
			if err != nil {
				b.missing = true
				continue
			}
			at := place{t.ID, int32(i)}
			if b.views[at] == nil {
				b.views[at] = newView(b.o, name, int32(i), name[0] != '_')
				b.views[at].gaps = name[0] == '_' && b.n.compact
				b.views[at].table = name == keyed
				b.views[at].loose, b.views[at].bounds, b.views[at].cuts = name == relaxed, b.n.bounds, b.n.cuts
			}
			b.open = append(b.open, opened{b.views[at], p})
		}
	}
}

// tables looks at what compaction has left.
func (b *observer) tables() {
	if b.n.api == nil || b.n.disk.off || b.w.failure != nil {
		return
	}
	for _, one := range b.open {
		if one.v.table && one.v.runs == b.run {
			one.v.compacted(one.p)
		}
	}
}

// replay holds the coordinators against what a restart would make of their logs.
func (b *observer) replay() {
	server := b.n.api
	if server == nil || b.n.disk.off {
		return
	}
	for i := int32(0); server.Groups.Shard(i) != nil; i++ {
		b.same("groups", i, server.Groups.Shard(i).Compare(func(live, replayed *group.Machine) {
			b.differ("groups", i, live.Dump(), replayed.Dump())
		}))
		b.same("transactions", i, server.Txns.Compare(i, func(live, replayed string) { b.differ("transactions", i, live, replayed) }))
	}
}

func (b *observer) same(what string, i int32, err error) {
	if err != nil && b.n.disk.failing == nil && !b.n.disk.off && !errors.Is(err, coord.ErrNoPartition) {
		b.w.log("%s %d can not be replayed: %v", what, i, err)
	}
}

func (b *observer) differ(what string, i int32, live, replayed string) {
	if live != replayed {
		b.w.fail("%s %d: the running machine is not the replay of its log:\n%s\nreplayed:\n%s", what, i, live, replayed)
	}
}

// view is what is known of a partition of a topic that exists now, nil if nothing is.
func (b *observer) view(topic string, index int32) *view {
	for _, one := range b.open {
		if one.v.topic == topic && one.v.index == index {
			return one.v
		}
	}
	return nil
}
