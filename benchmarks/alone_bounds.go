package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/benchmarks/figures"
)

const (
	idlePartitions = 10_000
	slowReaders    = 50
	connections    = 2000
	behindRate     = 200 << 20 // bytes a second of the reader that is far behind
)

// boundWork measures what has to stay bounded.
func boundWork() []workload {
	return []workload{
		{name: "idle", extra: 3 * time.Minute, run: idle, figures: []figures.Figure{
			figures.Less("idle-cpu", "10,000 idle partitions: CPU per second", "ms"),
			figures.Less("idle-empty", "memory of a broker without topics, after a restart", "MB"),
			figures.Less("idle-memory", "memory of a broker with 10,000 idle partitions, after a restart", "MB"),
			figures.Less("idle-each", "10,000 idle partitions: memory of each", "KB"),
		}},
		{name: "readers", extra: 2 * time.Minute, run: readers, figures: []figures.Figure{
			figures.Less("slow-memory", fmt.Sprintf("%d readers that ask for 50 MB ten times and read nothing: memory", slowReaders), "MB"),
			figures.More("tail-alone", "the tail: records through producer and consumer", "rec/s"),
			figures.More("tail-beside", "the tail beside a reader 1 GB behind (200 MB/s)", "rec/s"),
			figures.More("behind", "the reader far behind, meanwhile", "MB/s"),
		}},
		{name: "connections", extra: time.Minute, run: manyConnections, figures: []figures.Figure{
			figures.Less("connections-memory", "2,000 connections that have produced: memory", "MB"),
			figures.Less("connections-each", "2,000 connections that have produced: memory of each", "KB"),
		}},
	}
}

// idle looks at a broker that has many partitions and nothing to do.
func idle(ctx context.Context, e *env) error {
	again := func(e *env) (float64, error) {
		if err := e.broker.Stop(); err != nil {
			return 0, err
		}
		if err := e.broker.Start(ctx); err != nil {
			return 0, err
		}
		time.Sleep(3 * time.Second) // what a start leaves behind is done
		return e.broker.ResidentMB(), nil
	}
	return e.other(ctx, "idle", func(e *env) error {
		empty, err := again(e)
		if err != nil {
			return err
		}
		topic, err := e.topic(ctx, "idle", idlePartitions, nil)
		if err != nil {
			return err
		}
		if err := firstRecords(ctx, e, topic, idlePartitions); err != nil {
			return err
		}
		full, err := again(e)
		if err != nil {
			return err
		}
		before, long := e.cpu(), max(5*time.Second, e.seconds)
		time.Sleep(long)
		e.put("idle-cpu", milliseconds(e.cpu()-before)/long.Seconds())
		e.put("idle-empty", empty)
		e.put("idle-memory", full)
		e.put("idle-each", (full-empty)*1024/idlePartitions)
		return nil
	})
}

// readers measures what readers cost that are slow, and one that is far behind.
func readers(ctx context.Context, e *env) error {
	old, err := e.topic(ctx, "old", 1, nil)
	if err != nil {
		return err
	}
	if err := fill(ctx, e, old, 1<<30); err != nil {
		return err
	}
	d, err := e.detail(ctx, old)
	if err != nil {
		return err
	}
	if err := slow(e, d); err != nil {
		return err
	}
	alone, err := tailRate(ctx, e)
	if err != nil {
		return err
	}
	e.put("tail-alone", alone)
	stop := make(chan struct{})
	read := make(chan error, 1)
	var bytes atomic.Int64
	go func() { read <- behind(e, d, stop, &bytes) }()
	began := time.Now()
	beside, err := tailRate(ctx, e)
	took := time.Since(began)
	close(stop)
	if rerr := <-read; err == nil {
		err = rerr
	}
	e.put("tail-beside", beside)
	e.put("behind", float64(bytes.Load())/1e6/took.Seconds())
	return err
}

// slow asks for much on many connections and reads nothing.
func slow(e *env, d kadm.TopicDetail) error {
	before := e.broker.ResidentMB()
	for range slowReaders {
		w, err := dialWire(e.broker.Addr)
		if err != nil {
			return err
		}
		defer w.conn.Close()
		for i := range int64(10) {
			if err := w.send(fetchOf(d, 0, i*1000, 50<<20)); err != nil {
				return err
			}
		}
	}
	time.Sleep(2 * time.Second) // the broker has answered as far as the sockets take it
	e.put("slow-memory", e.broker.ResidentMB()-before)
	return nil
}

// behind reads a topic from its beginning, again and again, at its rate.
func behind(e *env, d kadm.TopicDetail, stop chan struct{}, bytes *atomic.Int64) error {
	w, err := dialWire(e.broker.Addr)
	if err != nil {
		return err
	}
	defer w.conn.Close()
	began := time.Now()
	for offset := int64(0); ; offset = (offset + 4000) % 1_000_000 { // records of 1 KB: 4 MB each time
		select {
		case <-stop:
			return nil
		case <-time.After(time.Until(began.Add(time.Duration(float64(bytes.Load()) / behindRate * float64(time.Second))))):
		}
		if err := w.send(fetchOf(d, 0, offset, 4<<20)); err != nil {
			return err
		}
		n, err := w.skip()
		if err != nil {
			return err
		}
		bytes.Add(n)
	}
}

// tailRate has one producer at full speed and one consumer at the end of the same topic, and counts what arrives there.
func tailRate(ctx context.Context, e *env) (float64, error) {
	topic, err := e.topic(ctx, "tail", 6, nil)
	if err != nil {
		return 0, err
	}
	cl, err := e.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var arrived atomic.Int64
	go func() {
		for ctx.Err() == nil {
			arrived.Add(int64(cl.PollFetches(ctx).NumRecords()))
		}
	}()
	from := time.Now().Add(time.Second)
	counted := make(chan int64, 1)
	go func() {
		time.Sleep(time.Until(from))
		n := arrived.Load()
		time.Sleep(time.Until(from.Add(e.seconds)))
		counted <- arrived.Load() - n
	}()
	if _, err := produceFor(ctx, e, topic, 100, e.seconds); err != nil {
		return 0, err
	}
	return float64(<-counted) / e.seconds.Seconds(), nil
}

// manyConnections opens connections, each of which writes a record and stays.
func manyConnections(ctx context.Context, e *env) error {
	topic, err := e.topic(ctx, "connections", 6, nil)
	if err != nil {
		return err
	}
	batch, err := e.oneBatch(ctx, topic)
	if err != nil {
		return err
	}
	before := e.broker.ResidentMB()
	for i := range int32(connections) {
		w, err := dialWire(e.broker.Addr)
		if err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
		defer w.conn.Close()
		req := kmsg.NewPtrProduceRequest()
		req.Version, req.Acks, req.TimeoutMillis = 9, 1, 5000
		t, p := kmsg.NewProduceRequestTopic(), kmsg.NewProduceRequestTopicPartition()
		t.Topic, p.Partition, p.Records = topic, i%6, batch
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
		if err := w.send(req); err != nil {
			return err
		}
		resp := kmsg.NewPtrProduceResponse()
		resp.Version = req.Version
		if err := w.receive(resp); err != nil {
			return err
		}
		if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
			return fmt.Errorf("produce on connection %d: error code %d", i, code)
		}
	}
	time.Sleep(time.Second)
	grown := e.broker.ResidentMB() - before
	e.put("connections-memory", grown)
	e.put("connections-each", grown*1024/connections)
	return nil
}

// oneBatch is a record batch that a client wrote into the topic and nobody's sequence: the producer has no id.
func (e *env) oneBatch(ctx context.Context, topic string) ([]byte, error) {
	cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.DisableIdempotentWrite(), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := cl.ProduceSync(ctx, &kgo.Record{Value: letters(100)}).FirstErr(); err != nil {
		return nil, err
	}
	d, err := e.detail(ctx, topic)
	if err != nil {
		return nil, err
	}
	w, err := dialWire(e.broker.Addr)
	if err != nil {
		return nil, err
	}
	defer w.conn.Close()
	req := fetchOf(d, 0, 0, 1<<20)
	if err := w.send(req); err != nil {
		return nil, err
	}
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = req.Version
	if err := w.receive(resp); err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 || len(resp.Topics[0].Partitions[0].RecordBatches) == 0 {
		return nil, fmt.Errorf("%s: the record that was written does not come back", topic)
	}
	return resp.Topics[0].Partitions[0].RecordBatches, nil
}
