package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors/sqlite"
	"github.com/millrace/millrace/streams"
)

// at is where a reader stands: topic, partition, next offset.
type at map[string]map[int32]int64

// left counts the records that the job and then the sink still have before them, one look at a time: only when the job
// has nothing left does the rest of the sink say anything.
func (c *parts) left(ctx context.Context, app *streams.App) (int, error) {
	cl, err := c.client()
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	committed, err := admin.FetchOffsets(ctx, app.ID())
	if err != nil {
		return 0, fmt.Errorf("offsets of the job: %w", err)
	}
	job := at{}
	committed.Each(func(o kadm.OffsetResponse) { job.set(o.Topic, o.Partition, o.At) })
	names, err := inputsOf(app)
	if err != nil {
		return 0, err
	}
	if n, err := c.behind(ctx, admin, job, names...); n > 0 || err != nil {
		return n, err
	}
	store, err := sqlite.New(sqlite.Config{Name: "flights", Path: databasePath(c.o.dir), Table: "state_days"})
	if err != nil {
		return 0, err
	}
	rows, err := store.Positions(ctx)
	if cerr := store.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, fmt.Errorf("positions of the sink: %w", err)
	}
	sink := at{}
	for _, r := range rows {
		sink.set(r.TP.Topic, r.TP.Partition, r.Position.Next)
	}
	return c.behind(ctx, admin, sink, c.topics.results)
}

func (a at) set(topic string, partition int32, next int64) {
	if a[topic] == nil {
		a[topic] = map[int32]int64{}
	}
	a[topic][partition] = next
}

// inputsOf names every topic that the job reads, its own repartition topics included.
func inputsOf(app *streams.App) ([]string, error) {
	t, err := app.Topology()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, sub := range t.Subs {
		for _, s := range sub.Sources {
			names = append(names, s.Topic)
		}
	}
	return names, nil
}

// behind counts records between a reader's positions and the high watermarks: 0 says that there is none, anything else
// that there are some or may be. The last offsets of a transactional topic are markers, which are no records, so an
// offset short of the end says nothing: what lies between is read. The last stable offset would be the wrong end: it
// follows a confirmed commit with a delay.
func (c *parts) behind(ctx context.Context, admin *kadm.Client, reader at, names ...string) (int, error) {
	ends, err := admin.ListEndOffsets(ctx, names...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return 0, fmt.Errorf("ends of %v: %w", names, err)
	}
	from := map[string]map[int32]kgo.Offset{}
	open := at{}
	ends.Each(func(e kadm.ListedOffset) {
		if next := reader[e.Topic][e.Partition]; next < e.Offset {
			if from[e.Topic] == nil {
				from[e.Topic] = map[int32]kgo.Offset{}
			}
			from[e.Topic][e.Partition] = kgo.NewOffset().At(next)
			open.set(e.Topic, e.Partition, e.Offset)
		}
	})
	if len(from) == 0 {
		return 0, nil
	}
	cl, err := c.client(kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())) // purged records of a repartition topic have been processed
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	records := 0
	patience, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for records == 0 && len(open) > 0 {
		fs := cl.PollFetches(patience)
		if ctx.Err() == nil && patience.Err() != nil {
			return 1, nil // a transaction is open: not known yet
		}
		if err := fs.Err0(); err != nil {
			return 0, err
		}
		fs.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				records++
			}
			if r.Offset+1 >= open[r.Topic][r.Partition] {
				if delete(open[r.Topic], r.Partition); len(open[r.Topic]) == 0 {
					delete(open, r.Topic)
				}
			}
		})
	}
	return records, nil
}
