package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/connectors"
)

// SetPositions changes positions in the store of a sink: to repeat records, to
// skip some, or to begin anew (Next -1) after a topic was recreated or retention
// has overtaken the connector. Of each row, TP and Position.Next count; topic id
// and leader epoch are filled in.
//
// It claims an epoch of its own, so it is safe at any time: a connector that runs
// finds itself fenced, opens again and goes on from the new position. The sink
// must implement connectors.Offsets.
func SetPositions(ctx context.Context, o SinkOptions, rows []connectors.StoredPosition) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	o = o.withDefaults()
	sink, err := o.New(0)
	if err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	store, ok := sink.(connectors.Offsets)
	if !ok {
		return fmt.Errorf("%w: sink %s cannot change its positions", connectors.ErrConfig, sink.Spec().Connector)
	}
	claims, err := newClaimer(o.Cluster, sink.Spec().Name, o.ClaimTopic)
	if err != nil {
		return err
	}
	defer claims.close()
	if err := claims.ensure(ctx); err != nil {
		return err
	}
	if err := sink.Prepare(ctx); err != nil {
		return fmt.Errorf("sink: prepare: %w", err)
	}
	return claims.set(ctx, store, rows)
}

// set claims and writes, until no other claim has come in between.
func (c *claimer) set(ctx context.Context, store connectors.Offsets, rows []connectors.StoredPosition) error {
	tps := make([]connectors.TP, len(rows))
	topics := make([]string, len(rows))
	for i, r := range rows {
		tps[i], topics[i] = r.TP, r.TP.Topic
	}
	known, err := describe(ctx, c.client, topics)
	if err != nil {
		return err
	}
	seen := int64(-1) // see task.takeOver
	for {
		fence, err := c.claim(ctx, "set-positions", tps)
		if err != nil {
			return err
		}
		fence.Epoch = max(fence.Epoch, seen+1)
		out := make([]connectors.StoredPosition, len(rows))
		for i, r := range rows {
			p := connectors.Position{Next: r.Position.Next, LeaderEpoch: -1}
			if p.Next >= 0 {
				p.TopicID = known[r.TP.Topic].id
			} else {
				p = connectors.NoPosition
			}
			out[i] = connectors.StoredPosition{TP: r.TP, Fence: fence, Position: p}
		}
		err = store.SetPositions(ctx, out)
		fenced, ok := errors.AsType[*connectors.FencedError](err)
		if !ok {
			return err
		}
		seen = max(seen, fenced.Stored.Epoch)
	}
}
