package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/benchmarks/figures"
)

// ackWork counts acknowledgements of single records: with both sides synced to disk before the answer, and with Kafka as
// it ships (not synced) against ours synced.
func ackWork() []workload {
	var out []workload
	for _, c := range []struct {
		name, what string
		clients    int
		partitions int32
		config     map[string]*string
	}{
		{"acks-shipped-1", "as shipped", 1, 6, nil},
		{"acks-shipped-32", "as shipped", 32, 6, nil},
		{"acks-1", "synced", 1, 6, durable},
		{"acks-32", "synced", 32, 6, durable},
		{"acks-128", "synced", 128, 6, durable},
		{"acks-128-wide", "synced, 1,000 partitions", 128, 1000, durable},
	} {
		what := fmt.Sprintf("one record at a time, %s, %s", c.what, counted(c.clients, "client"))
		out = append(out, workload{name: "acks", extra: 20 * time.Second, figures: []figures.Figure{
			figures.More(c.name, what, "acks/s"),
			figures.Less(c.name+"-p50", what+": p50", "ms"),
			figures.Less(c.name+"-p99", what+": p99", "ms"),
			figures.Less(c.name+"-cpu", what+": broker CPU per record", "µs"),
		}, run: func(ctx context.Context, e *env) error {
			topic, err := e.topic(ctx, "acks", c.partitions, c.config)
			if err != nil {
				return err
			}
			o, err := eachClient(ctx, e, c.clients, func(ctx context.Context, i int, once func(func() error) bool) error {
				return oneAtATime(ctx, e, topic, i, c.partitions, once)
			})
			if err != nil {
				return err
			}
			e.put(c.name, o.perSecond)
			e.put(c.name+"-p50", o.all.at(0.50))
			e.put(c.name+"-p99", o.all.at(0.99))
			e.putPer(c.name+"-cpu", o.cpu, o.operations)
			return nil
		}})
	}
	return out
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func oneAtATime(ctx context.Context, e *env, topic string, i int, partitions int32, once func(func() error) bool) error {
	cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	value := letters(100)
	for n := int32(i); once(func() error {
		return cl.ProduceSync(ctx, &kgo.Record{Partition: n % partitions, Value: value}).FirstErr()
	}); n += 131 { // over all partitions where there are many
		continue
	}
	return nil
}

func pacedWork() []workload {
	const what = "a record every ms, not synced"
	return []workload{{name: "paced", figures: []figures.Figure{
		figures.Less("paced-p50", what+": p50", "ms"),
		figures.Less("paced-p99", what+": p99", "ms"),
		figures.Less("paced-p999", what+": p99.9", "ms"),
		figures.Less("paced-cpu", what+": broker CPU per record", "µs"),
	}, run: paced}}
}

// paced sends a record every millisecond, which neither side syncs before it answers, and looks at the latencies.
func paced(ctx context.Context, e *env) error {
	topic, acks, how, err := e.relaxedTopic(ctx, "paced")
	if err != nil {
		return err
	}
	cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0), kgo.RequiredAcks(acks), kgo.DisableIdempotentWrite(),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return err
	}
	defer cl.Close()
	var lat latencies
	var cpu time.Duration
	value := letters(100)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	from := time.Now().Add(warmUp)
	to := from.Add(e.seconds)
	for time.Now().Before(to) {
		<-tick.C
		t := time.Now()
		if err := cl.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr(); err != nil {
			return err
		}
		switch {
		case t.Before(from):
			cpu = e.cpu()
		default:
			lat = append(lat, time.Since(t))
		}
	}
	e.putPer("paced-cpu", e.cpu()-cpu, float64(len(lat)))
	e.put("paced-p50", lat.at(0.50))
	e.put("paced-p99", lat.at(0.99))
	e.put("paced-p999", lat.at(0.999))
	e.sheet.Notes["paced-p50"] = how
	return nil
}
