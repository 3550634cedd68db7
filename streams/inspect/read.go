package inspect

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/txn/session"
)

// read reads a topic as a committed reader does, from its start to where that ends
// now; nothing of a topic that is not there.
func (i *Inspector) read(ctx context.Context, topic string, f func(*session.Record)) error {
	parts, err := i.parts(ctx, topic)
	if err != nil || len(parts) == 0 {
		return err
	}
	starts, err := i.bounds(ctx, session.Start, parts)
	if err != nil {
		return err
	}
	ends, err := i.bounds(ctx, session.StableEnd, parts)
	if err != nil {
		return err
	}
	reader := i.session.NewReader(session.ReaderOptions{})
	defer reader.Close()
	var feeds []*session.Feed
	for _, p := range parts {
		feeds = append(feeds, reader.Add(p, starts[p]))
	}
	for {
		left := 0
		for _, feed := range feeds {
			end := ends[feed.Part()]
			for r, ok := feed.Head(); ok && r.Offset < end; r, ok = feed.Head() {
				f(r)
				feed.Pop()
			}
			if err := feed.Err(); err != nil {
				return fmt.Errorf("inspect: read %s/%d: %w", feed.Part().Topic, feed.Part().Partition, err)
			}
			if feed.Position() < end {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("inspect: read %s: %w", topic, ctx.Err())
		case <-reader.Arrived():
		}
	}
}
