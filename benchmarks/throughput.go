package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// benchProduceConsume writes records of 100 bytes and 1 KB with acks=all (synced on our server) and reads them back.
func benchProduceConsume(ctx context.Context, e *env) error {
	for _, size := range []int{100, 1000} {
		topic, err := e.topic(ctx, fmt.Sprintf("p%d", size), 6)
		if err != nil {
			return err
		}
		written, took, err := produceFor(ctx, e, topic, size)
		if err != nil {
			return err
		}
		rate := float64(written) / took.Seconds()
		e.add(fmt.Sprintf("produce %d B, acks=all, 6 partitions", size), "%s rec/s, %.0f MB/s", million(rate), rate*float64(size)/1e6)
		took, err = consume(ctx, e, topic, written)
		if err != nil {
			return err
		}
		rate = float64(written) / took.Seconds()
		e.add(fmt.Sprintf("consume %d B", size), "%s rec/s, %.0f MB/s", million(rate), rate*float64(size)/1e6)
	}
	return nil
}

func million(rate float64) string { return fmt.Sprintf("%.2fM", rate/1e6) }

func produceFor(ctx context.Context, e *env, topic string, size int) (int64, time.Duration, error) {
	cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(200_000), kgo.RecordPartitioner(kgo.StickyPartitioner()))
	if err != nil {
		return 0, 0, err
	}
	defer cl.Close()
	value := make([]byte, size)
	for i := range value {
		value[i] = byte('a' + i%26)
	}
	var acked atomic.Int64
	var failed atomic.Pointer[error]
	began := time.Now()
	for n := 0; ; n++ {
		if n%1024 == 0 && (time.Since(began) >= e.seconds || ctx.Err() != nil || failed.Load() != nil) {
			break
		}
		cl.Produce(ctx, &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				failed.CompareAndSwap(nil, &err)
				return
			}
			acked.Add(1)
		})
	}
	if err := cl.Flush(ctx); err != nil {
		return 0, 0, err
	}
	if err := failed.Load(); err != nil {
		return 0, 0, *err
	}
	return acked.Load(), time.Since(began), nil
}

func consume(ctx context.Context, e *env, topic string, count int64) (time.Duration, error) {
	cl, err := e.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxBytes(50<<20))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	began := time.Now()
	for n := int64(0); n < count; {
		fs := cl.PollFetches(ctx)
		if err := fs.Err0(); err != nil {
			return 0, fmt.Errorf("after %d of %d records: %w", n, count, err)
		}
		n += int64(fs.NumRecords())
	}
	return time.Since(began), nil
}

// benchAcks counts acknowledgements of single records, each synced on our server before it is answered.
func benchAcks(ctx context.Context, e *env) error {
	for _, clients := range []int{1, 32, 128} {
		topic, err := e.topic(ctx, "acks", 6)
		if err != nil {
			return err
		}
		n, lat, err := eachClient(ctx, e, clients, func(ctx context.Context, i int, once func(func() error) bool) error {
			cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()),
				kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if err != nil {
				return err
			}
			defer cl.Close()
			value := make([]byte, 100)
			for once(func() error {
				return cl.ProduceSync(ctx, &kgo.Record{Partition: int32(i % 6), Value: value}).FirstErr()
			}) {
			}
			return nil
		})
		if err != nil {
			return err
		}
		e.add(fmt.Sprintf("1 record at a time, %d clients", clients), "%.0f acks/s, p50 %s, p99 %s", n, lat.at(0.50), lat.at(0.99))
	}
	return nil
}

// eachClient runs f in that many goroutines; once runs one operation, records its latency and says whether to go on.
// It returns operations per second.
func eachClient(ctx context.Context, e *env, clients int, f func(ctx context.Context, i int, once func(func() error) bool) error) (float64, latencies, error) {
	ctx, cancel := context.WithTimeout(ctx, e.seconds+time.Minute)
	defer cancel()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		all  latencies
		errs []error
	)
	began := time.Now()
	for i := range clients {
		wg.Go(func() {
			var own latencies
			var opErr error
			once := func(op func() error) bool {
				t := time.Now()
				if opErr = op(); opErr != nil {
					return false
				}
				own = append(own, time.Since(t))
				return time.Since(began) < e.seconds
			}
			err := f(ctx, i, once)
			if err == nil {
				err = opErr
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
			if err != nil {
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if len(errs) > 0 {
		return 0, nil, errs[0]
	}
	return float64(len(all)) / took.Seconds(), all, nil
}
