package inspect

import (
	"context"
	"slices"

	"github.com/millrace/millrace/txn/session"
)

// Lag is how far a sub-topology is behind in one partition that it reads.
type Lag struct {
	SubTopology string `json:"subTopology"`
	Topic       string `json:"topic"`
	Partition   int32  `json:"partition"`
	Committed   int64  `json:"committed"` // -1: nothing has been committed yet
	End         int64  `json:"end"`       // of what a committed reader may read
	Lag         int64  `json:"lag"`
}

// Lags lists all partitions that an application reads, in the order of its
// sub-topologies.
func (i *Inspector) Lags(ctx context.Context, id string) ([]Lag, error) {
	d, err := i.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	var lags []Lag
	for _, sub := range d.stored.Picture.Subs {
		var topics []string
		for _, n := range sub.Nodes {
			if n.From != "" && !slices.Contains(topics, n.From) {
				topics = append(topics, n.From)
			}
		}
		parts, err := i.parts(ctx, topics...)
		if err != nil {
			return nil, err
		}
		starts, err := i.bounds(ctx, session.Start, parts)
		if err != nil {
			return nil, err
		}
		ends, err := i.bounds(ctx, session.StableEnd, parts)
		if err != nil {
			return nil, err
		}
		offsets, err := i.committed(ctx, id, parts)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			at := offsets[p].Next
			lags = append(lags, Lag{SubTopology: sub.Name, Topic: p.Topic, Partition: p.Partition,
				Committed: at, End: ends[p], Lag: max(0, ends[p]-max(at, starts[p]))})
		}
	}
	return lags, nil
}

// TopicSize is an internal topic with the offsets that it spans: records, of a
// compacted one some more than there are.
type TopicSize struct {
	Topic      string `json:"topic"`
	Partitions int    `json:"partitions"`
	Offsets    int64  `json:"offsets"`
}

// Sizes lists the internal topics of an application that are there.
func (i *Inspector) Sizes(ctx context.Context, id string) ([]TopicSize, error) {
	a, err := i.Application(ctx, id)
	if err != nil {
		return nil, err
	}
	parts, err := i.parts(ctx, a.Internal...)
	if err != nil {
		return nil, err
	}
	starts, err := i.bounds(ctx, session.Start, parts)
	if err != nil {
		return nil, err
	}
	ends, err := i.bounds(ctx, session.End, parts)
	if err != nil {
		return nil, err
	}
	var sizes []TopicSize
	for _, p := range parts { // those of a topic come together
		if len(sizes) == 0 || sizes[len(sizes)-1].Topic != p.Topic {
			sizes = append(sizes, TopicSize{Topic: p.Topic})
		}
		s := &sizes[len(sizes)-1]
		s.Partitions++
		s.Offsets += max(0, ends[p]-starts[p])
	}
	return sizes, nil
}
