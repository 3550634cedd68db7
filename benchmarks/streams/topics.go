package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// partitions of every topic here.
const partitions = 4

// cluster is a broker as clients see it.
type cluster struct{ addr string }

func (c cluster) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.addr)}, opts...)...)
}

func (c cluster) admin(f func(*kadm.Client) error) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	return f(kadm.NewClient(cl))
}

// create makes topics whose records never expire: the times in them are old.
func (c cluster) create(ctx context.Context, topics ...string) error {
	forever := "-1"
	return c.admin(func(adm *kadm.Client) error {
		resp, err := adm.CreateTopics(ctx, partitions, 1, map[string]*string{"retention.ms": &forever}, topics...)
		if err == nil {
			err = resp.Error()
		}
		if err != nil {
			return err
		}
		for {
			ends, err := adm.ListEndOffsets(ctx, topics...)
			if err == nil && ends.Error() == nil {
				return nil
			}
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return fmt.Errorf("topics %v: %w", topics, err)
			}
		}
	})
}

// load writes records as fast as the cluster takes them, partitioned by key.
func (c cluster) load(ctx context.Context, topic string, n int64, next func(*kgo.Record)) error {
	cl, err := c.client(kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(5*time.Millisecond),
		kgo.MaxBufferedRecords(100_000))
	if err != nil {
		return err
	}
	defer cl.Close()
	first := kgo.AbortingFirstErrPromise(cl)
	for range n {
		r := new(kgo.Record)
		next(r)
		cl.Produce(ctx, r, first.Promise())
	}
	return first.Err()
}

// committed waits until a group has committed its inputs to their ends.
func (c cluster) committed(ctx context.Context, group string, topics ...string) error {
	return c.admin(func(adm *kadm.Client) error {
		ends, err := adm.ListEndOffsets(ctx, topics...)
		if err == nil {
			err = ends.Error()
		}
		if err != nil {
			return err
		}
		for {
			left := int64(0)
			offsets, err := adm.FetchOffsets(ctx, group)
			if err == nil {
				err = offsets.Error()
			}
			if err != nil && !isPassing(err) {
				return fmt.Errorf("offsets of group %s: %w", group, err)
			}
			ends.Each(func(end kadm.ListedOffset) {
				at, _ := offsets.Lookup(end.Topic, end.Partition)
				left += end.Offset - max(0, at.At)
			})
			if err == nil && left == 0 {
				return nil
			}
			if err := pause(ctx, 5*time.Millisecond); err != nil {
				return fmt.Errorf("group %s has %d records left to commit: %w", group, left, err)
			}
		}
	})
}

// isPassing says whether a coordinator is only on its way.
func isPassing(err error) bool {
	return errors.Is(err, kerr.CoordinatorLoadInProgress) || errors.Is(err, kerr.CoordinatorNotAvailable) || errors.Is(err, kerr.UnstableOffsetCommit)
}

// ends are the offsets up to which a committed reader reads, by partition.
func (c cluster) ends(ctx context.Context, topic string) (ends map[int32]int64, sum int64, err error) {
	ends = map[int32]int64{}
	err = c.admin(func(adm *kadm.Client) error {
		listed, err := adm.ListCommittedOffsets(ctx, topic)
		if err == nil {
			err = listed.Error()
		}
		listed.Each(func(o kadm.ListedOffset) {
			ends[o.Partition] = o.Offset
			sum += o.Offset
		})
		return err
	})
	return ends, sum, err
}

// results gives f what a committed reader sees of a topic, each partition in order.
func (c cluster) results(ctx context.Context, topic string, f func(*kgo.Record) error) error {
	ends, _, err := c.ends(ctx, topic)
	if err != nil {
		return err
	}
	for p, end := range ends {
		if end == 0 {
			delete(ends, p)
		}
	}
	cl, err := c.client(kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(ends) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return err
		}
		var failed error
		fetches.EachRecord(func(r *kgo.Record) {
			if failed == nil && !r.Attrs.IsControl() {
				failed = f(r)
			}
			if end, ok := ends[r.Partition]; ok && r.Offset+1 >= end {
				delete(ends, r.Partition)
			}
		})
		if failed != nil {
			return failed
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
