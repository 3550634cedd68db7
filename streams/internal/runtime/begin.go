package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// ErrNoOffset reports a partition that is to be read from the group's offset only, and
// has none.
var ErrNoOffset = errors.New("streams: no committed offset")

// begin finds where to begin the inputs without a committed offset.
func (t *takeover) begin(ctx context.Context) (map[session.TopicPartition]int64, error) {
	ways := map[topology.Begin][]session.TopicPartition{}
	for part, o := range t.offsets {
		if o.Next < 0 {
			b := t.plan.begin(part.Topic)
			ways[b] = append(ways[b], part)
		}
	}
	all := map[session.TopicPartition]int64{}
	for b, parts := range ways {
		found, err := t.beginAt(ctx, b, parts)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, found)
	}
	return all, nil
}

func (t *takeover) beginAt(ctx context.Context, b topology.Begin, parts []session.TopicPartition) (map[session.TopicPartition]int64, error) {
	switch b.At {
	case topology.BeginEnd:
		return t.cluster.List(ctx, session.StableEnd, parts)
	case topology.BeginAgo:
		// The end first: what is written meanwhile is found by its time.
		ends, err := t.cluster.List(ctx, session.StableEnd, parts)
		if err != nil {
			return nil, err
		}
		found, err := t.cluster.ListAt(ctx, time.Now().Add(-b.Ago), parts)
		if err != nil {
			return nil, err
		}
		for part, at := range found {
			if at < 0 {
				found[part] = ends[part]
			}
		}
		return found, nil
	case topology.BeginNowhere:
		return nil, fmt.Errorf("%w: group %s has none for %s/%d, which is read FromCommitted", ErrNoOffset, t.plan.app.AppID, parts[0].Topic, parts[0].Partition)
	}
	return t.cluster.List(ctx, session.Start, parts)
}
