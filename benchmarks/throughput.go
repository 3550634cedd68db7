package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// benchProduceConsume writes records of 100 bytes and 1 KB with acks=all (synced on our server) and reads them back.
func benchProduceConsume(ctx context.Context, e *env) error {
	for _, size := range []int{100, 1000} {
		topic, err := e.topic(ctx, fmt.Sprintf("p%d", size), 6, nil)
		if err != nil {
			return err
		}
		cpu := e.broker.cpu()
		written, took, err := produceFor(ctx, e, topic, size)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("produce %d B, acks=all, 6 partitions", size)
		e.throughput(name, written, took, size)
		e.cpuPer(name+": broker CPU per record", cpu, float64(written))
		cpu = e.broker.cpu()
		if took, err = consume(ctx, e, topic, written); err != nil {
			return err
		}
		name = fmt.Sprintf("consume %d B", size)
		e.throughput(name, written, took, size)
		e.cpuPer(name+": broker CPU per record", cpu, float64(written))
	}
	return nil
}

// throughput adds records of 100 bytes as records, larger ones as bytes a second.
func (e *env) throughput(name string, records int64, took time.Duration, size int) {
	rate := float64(records) / took.Seconds()
	if size > 100 {
		e.more(name, rate*float64(size)/1e6, "MB/s")
		return
	}
	e.more(name, rate, "rec/s")
}

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
