package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// benchAcks counts acknowledgements of single records: with everyone synced to disk before the answer, and with Kafka as
// it ships (not synced) against ours synced.
func benchAcks(ctx context.Context, e *env) error {
	for _, c := range []struct {
		what       string
		clients    int
		partitions int32
		config     map[string]*string
	}{
		{"synced", 1, 6, synced}, {"synced", 32, 6, synced}, {"synced", 128, 6, synced},
		{"as shipped", 1, 6, nil}, {"as shipped", 32, 6, nil},
		{"synced, 1,000 partitions", 128, 1000, synced},
	} {
		topic, err := e.topic(ctx, "acks", c.partitions, c.config)
		if err != nil {
			return err
		}
		cpu := e.broker.cpu()
		n, lat, err := eachClient(ctx, e, c.clients, func(ctx context.Context, i int, once func(func() error) bool) error {
			return oneAtATime(ctx, e, topic, i, c.partitions, once)
		})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("1 record at a time, %s, %d clients", c.what, c.clients)
		e.more(name, n, "acks/s")
		e.less(name+": p99", lat.at(0.99), "ms")
		e.cpuPer(name+": broker CPU per record", cpu, float64(len(lat)))
	}
	return nil
}

func oneAtATime(ctx context.Context, e *env, topic string, i int, partitions int32, once func(func() error) bool) error {
	cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	value := make([]byte, 100)
	for n := int32(i); once(func() error {
		return cl.ProduceSync(ctx, &kgo.Record{Partition: n % partitions, Value: value}).FirstErr()
	}); n += 131 { // over all partitions where there are many
		continue
	}
	return nil
}

// benchPaced sends a record every millisecond with acks=1, which neither side syncs, and looks at the latencies.
func benchPaced(ctx context.Context, e *env) error {
	topic, err := e.topic(ctx, "paced", 1, nil)
	if err != nil {
		return err
	}
	cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0), kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	if err != nil {
		return err
	}
	defer cl.Close()
	var lat latencies
	value := make([]byte, 100)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < e.seconds; {
		<-tick.C
		t := time.Now()
		if err := cl.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr(); err != nil {
			return err
		}
		lat = append(lat, time.Since(t))
	}
	e.less("a record every ms, not synced: p50", lat.at(0.50), "ms")
	e.less("a record every ms, not synced: p99", lat.at(0.99), "ms")
	return nil
}
