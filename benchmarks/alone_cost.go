package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/benchmarks/figures"
)

var (
	segmentCounts   = []int{1, 100, 1000}
	partitionCounts = []int{10, 1000, 10_000}
)

// costWork measures the processor time of the broker per append and per fetch while segments and partitions grow.
func costWork() []workload {
	seg := workload{name: "segments", extra: 4 * time.Minute, run: segmentCost}
	for _, n := range segmentCounts {
		seg.figures = append(seg.figures,
			figures.Less(fmt.Sprintf("append-segments-%d", n), fmt.Sprintf("CPU per append, partition of %s", counted(n, "segment")), "µs"),
			figures.Less(fmt.Sprintf("fetch-segments-%d", n), fmt.Sprintf("CPU per fetch at a random offset, partition of %s", counted(n, "segment")), "µs"))
	}
	par := workload{name: "partitions", extra: 4 * time.Minute, run: partitionCost}
	for _, n := range partitionCounts {
		par.figures = append(par.figures,
			figures.Less(fmt.Sprintf("append-partitions-%d", n), fmt.Sprintf("CPU per append, %d partitions in turn", n), "µs"),
			figures.Less(fmt.Sprintf("fetch-partitions-%d", n), fmt.Sprintf("CPU per fetch, %d partitions in turn", n), "µs"))
	}
	return []workload{seg, par}
}

// segmentCost fills three partitions with the same batches, in number of segments only different, and measures each.
func segmentCost(ctx context.Context, e *env) error {
	const total = 960 << 20 // in one segment: below the default of 1 GiB
	for _, n := range segmentCounts {
		var config map[string]*string
		if n > 1 {
			config = map[string]*string{"internal.segment.bytes": kadm.StringPtr(fmt.Sprint(total / n))} // below the least of segment.bytes
		}
		topic, err := e.topic(ctx, fmt.Sprintf("segments%d", n), 1, config)
		if err != nil {
			return err
		}
		if err := fillSegments(ctx, e, topic, total); err != nil {
			return err
		}
		files, err := filepath.Glob(filepath.Join(e.broker.Dir, topic+"-0", "*.log"))
		if err != nil {
			return err
		}
		if len(files) < n*9/10 || len(files) > n*11/10+1 {
			return fmt.Errorf("%s has %d segments, want about %d", topic, len(files), n)
		}
		fetched, err := fetchCost(ctx, e, topic, 1)
		if err != nil {
			return err
		}
		e.put(fmt.Sprintf("fetch-segments-%d", n), fetched)
		appended, err := appendCost(ctx, e, topic, 1)
		if err != nil {
			return err
		}
		e.put(fmt.Sprintf("append-segments-%d", n), appended)
	}
	return nil
}

// fillSegments writes batches of about 16 KB.
func fillSegments(ctx context.Context, e *env, topic string, bytes int64) error {
	cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(5*time.Millisecond),
		kgo.ProducerBatchMaxBytes(16<<10), kgo.MaxBufferedRecords(20_000))
	if err != nil {
		return err
	}
	defer cl.Close()
	value := letters(1000)
	first := kgo.AbortingFirstErrPromise(cl)
	for range bytes / 1000 {
		cl.Produce(ctx, &kgo.Record{Value: value}, first.Promise())
	}
	return first.Err()
}

// partitionCost starts a broker for each number of partitions and measures it.
func partitionCost(ctx context.Context, e *env) error {
	for _, n := range partitionCounts {
		err := e.other(ctx, fmt.Sprintf("partitions%d", n), func(e *env) error {
			topic, err := e.topic(ctx, "many", int32(n), nil)
			if err != nil {
				return err
			}
			if err := firstRecords(ctx, e, topic, int32(n)); err != nil {
				return err
			}
			appended, err := appendCost(ctx, e, topic, int32(n))
			if err != nil {
				return err
			}
			e.put(fmt.Sprintf("append-partitions-%d", n), appended)
			fetched, err := fetchCost(ctx, e, topic, int32(n))
			if err != nil {
				return err
			}
			e.put(fmt.Sprintf("fetch-partitions-%d", n), fetched)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// firstRecords writes one record into each partition.
// The producer has no id: what a partition remembers of one for a day is not the partition's.
func firstRecords(ctx context.Context, e *env, topic string, partitions int32) error {
	cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableIdempotentWrite())
	if err != nil {
		return err
	}
	defer cl.Close()
	records := make([]*kgo.Record, partitions)
	for i := range records {
		records[i] = &kgo.Record{Partition: int32(i), Value: letters(100)}
	}
	return cl.ProduceSync(ctx, records...).FirstErr()
}

// appendCost has one client write one record at a time, and returns microseconds of the broker's processor time for each.
func appendCost(ctx context.Context, e *env, topic string, partitions int32) (float64, error) {
	o, err := eachClient(ctx, e, 1, func(ctx context.Context, i int, once func(func() error) bool) error {
		return oneAtATime(ctx, e, topic, i, partitions, once)
	})
	if err != nil || o.operations == 0 {
		return 0, err
	}
	return float64(o.cpu.Nanoseconds()) / o.operations / 1000, nil
}

// fetchCost has one client fetch one batch at a time from random offsets of partitions in turn.
func fetchCost(ctx context.Context, e *env, topic string, partitions int32) (float64, error) {
	d, err := e.detail(ctx, topic)
	if err != nil {
		return 0, err
	}
	var ends kadm.ListedOffsets
	err = e.admin(ctx, func(ctx context.Context, adm *kadm.Client) error {
		ends, err = adm.ListEndOffsets(ctx, topic)
		return err
	})
	if err != nil {
		return 0, err
	}
	w, err := dialWire(e.broker.Addr)
	if err != nil {
		return 0, err
	}
	defer w.conn.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	p := int32(0)
	o, err := eachClient(ctx, e, 1, func(_ context.Context, _ int, once func(func() error) bool) error {
		for once(func() error {
			p = (p + 131) % partitions
			end, ok := ends.Lookup(topic, p)
			if !ok || end.Offset == 0 {
				return fmt.Errorf("%s-%d: no end offset", topic, p)
			}
			return w.fetchOnce(fetchOf(d, p, rng.Int64N(end.Offset), 1000))
		}) {
		}
		return nil
	})
	if err != nil || o.operations == 0 {
		return 0, err
	}
	return float64(o.cpu.Nanoseconds()) / o.operations / 1000, nil
}
