package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/benchmarks/figures"
)

func throughputWork() []workload {
	var out []workload
	for _, size := range []int{100, 1000} {
		name := fmt.Sprint(size)
		unit := "rec/s"
		if size > 100 {
			unit = "MB/s"
		}
		out = append(out, workload{name: "produce", extra: 90 * time.Second, figures: []figures.Figure{
			figures.More("produce-"+name, fmt.Sprintf("produce %d B, 6 partitions", size), unit),
			figures.Less("produce-cpu-"+name, fmt.Sprintf("produce %d B: broker CPU per record", size), "µs"),
			figures.More("consume-"+name, fmt.Sprintf("consume %d B", size), unit),
			figures.Less("consume-cpu-"+name, fmt.Sprintf("consume %d B: broker CPU per KB", size), "µs"),
		}, run: func(ctx context.Context, e *env) error { return produceAndConsume(ctx, e, size, name) }})
	}
	return out
}

// produceAndConsume writes records with acks=all and reads all of them back.
func produceAndConsume(ctx context.Context, e *env, size int, name string) error {
	topic, err := e.topic(ctx, "p"+name, 6, nil)
	if err != nil {
		return err
	}
	p, err := produceFor(ctx, e, topic, size, e.seconds)
	if err != nil {
		return err
	}
	e.put("produce-"+name, rate(p.records, e.seconds, size))
	e.putPer("produce-cpu-"+name, p.cpu, float64(p.records))
	before := e.cpu()
	took, err := consume(ctx, e, topic, p.total)
	if err != nil {
		return err
	}
	e.put("consume-"+name, rate(p.total, took, size))
	e.putPer("consume-cpu-"+name, e.cpu()-before, float64(p.total)*float64(size)/1000)
	return nil
}

// rate is records a second for records of 100 bytes, MB a second for larger ones.
func rate(records int64, took time.Duration, size int) float64 {
	r := float64(records) / took.Seconds()
	if size > 100 {
		return r * float64(size) / 1e6
	}
	return r
}

// produced is what a producer at full speed did.
type produced struct {
	records, total int64         // acknowledged in the window, and at all
	cpu            time.Duration // of the broker, in the window
}

// produceFor runs one producer at full speed: a second that does not count, then the window.
func produceFor(ctx context.Context, e *env, topic string, size int, seconds time.Duration) (produced, error) {
	cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(200_000), kgo.RecordPartitioner(kgo.StickyPartitioner()))
	if err != nil {
		return produced{}, err
	}
	defer cl.Close()
	value := letters(size)
	var acked atomic.Int64
	var failed atomic.Pointer[error]
	from := time.Now().Add(time.Second)
	to := from.Add(seconds)
	type mark struct {
		acked int64
		cpu   time.Duration
	}
	marks := make(chan mark, 2)
	go func() {
		for _, at := range []time.Time{from, to} {
			time.Sleep(time.Until(at))
			marks <- mark{acked.Load(), e.cpu()}
		}
	}()
	for n := 0; ; n++ {
		if n%1024 == 0 && (!time.Now().Before(to) || ctx.Err() != nil || failed.Load() != nil) {
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
		return produced{}, err
	}
	if err := failed.Load(); err != nil {
		return produced{}, *err
	}
	begin, end := <-marks, <-marks
	return produced{end.acked - begin.acked, acked.Load(), end.cpu - begin.cpu}, nil
}

func letters(size int) []byte {
	value := make([]byte, size)
	for i := range value {
		value[i] = byte('a' + i%26)
	}
	return value
}

func consume(ctx context.Context, e *env, topic string, count int64) (time.Duration, error) {
	cl, err := e.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxBytes(50<<20))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
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
