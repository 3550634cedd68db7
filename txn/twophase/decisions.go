package twophase

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/txn/session"
)

// lastDecision is the gid of the last transaction of the id that the log has committed, "" for none. It waits until
// everything in the topic is decided that was there when it began: a reader that stopped at the last stable offset could miss
// the very transaction it asks about.
func (c *client) lastDecision(ctx context.Context, topic, id string) (string, error) {
	cluster, err := session.Connect(ctx, session.ClusterOptions{Seeds: c.cluster.Seeds(), Dial: c.cluster.Dial})
	if err != nil {
		return "", err
	}
	defer cluster.Close()
	part := session.TopicPartition{Topic: topic, Partition: 0}
	begin, err := cluster.List(ctx, session.Start, []session.TopicPartition{part})
	if err != nil {
		return "", err
	}
	end, err := cluster.List(ctx, session.End, []session.TopicPartition{part})
	if err != nil {
		return "", err
	}
	reader := cluster.NewReader(session.ReaderOptions{})
	defer reader.Close()
	feed := reader.Add(part, begin[part])
	last := ""
	for {
		for r, ok := feed.Head(); ok; r, ok = feed.Head() {
			if string(r.Key) == id {
				last = string(r.Value)
			}
			feed.Pop()
		}
		if err := feed.Err(); err != nil {
			return "", fmt.Errorf("twophase: decisions of %s: %w", id, err)
		}
		if feed.Position() >= end[part] {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("twophase: decisions of %s: read up to offset %d of %d, where a transaction is not decided: %w",
				id, feed.Position(), end[part], ctx.Err())
		case <-reader.Arrived():
		}
	}
}
