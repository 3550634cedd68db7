package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/benchmarks/figures"
)

func startWork() []workload {
	return []workload{{name: "start", process: true, figures: []figures.Figure{
		figures.Less("start", "start on a fresh folder, to the first answered request", "ms"),
		figures.Less("memory-idle", "memory, idle", "MB"),
	}, run: func(_ context.Context, e *env) error {
		e.put("start", milliseconds(e.broker.Ready))
		time.Sleep(time.Second) // what a start still does behind its first answer
		e.put("memory-idle", e.broker.ResidentMB())
		return nil
	}}}
}

const manyTopics = 1000

func lifecycleWork() []workload {
	return []workload{
		{name: "topics", extra: time.Minute, figures: []figures.Figure{
			figures.Less("topics-create", "1,000 topics: create", "ms"),
			figures.Less("topics-first", "1,000 topics: first record in each", "ms"),
			figures.Less("topics-files", "1,000 topics: open files", "files"),
		}, run: topics},
		{name: "restart", process: true, extra: 3 * time.Minute, figures: []figures.Figure{
			figures.Less("memory-after", "memory after the whole run", "MB"),
			figures.More("log-size", "log in the data folder at the SIGKILL", "GB"),
			figures.Less("restart", "ready after SIGKILL, all partitions led", "ms"),
		}, run: restart},
	}
}

// topics creates a thousand topics and writes the first record of each.
func topics(ctx context.Context, e *env) error {
	cl, err := e.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	names := make([]string, manyTopics)
	run := time.Now().UnixNano()
	for i := range names {
		names[i] = fmt.Sprintf("bench-many-%d-%d", run, i)
	}
	began := time.Now()
	resp, err := adm.CreateTopics(ctx, 1, 1, nil, names...)
	if err == nil {
		err = resp.Error()
	}
	if err == nil {
		err = led(ctx, adm, len(names), names...)
	}
	if err != nil {
		return err
	}
	e.put("topics-create", milliseconds(time.Since(began)))
	records := make([]*kgo.Record, manyTopics)
	for i := range records {
		records[i] = &kgo.Record{Topic: names[i], Value: []byte("first")}
	}
	began = time.Now()
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	e.put("topics-first", milliseconds(time.Since(began)))
	if e.broker != nil {
		e.put("topics-files", float64(e.broker.OpenFiles()))
	}
	return nil
}

// logAtRestart is how much a broker has in its log when it is killed.
const logAtRestart = 2_300_000_000

// restart fills the log up, kills the broker and times the next start until every partition has a leader again.
func restart(ctx context.Context, e *env) error {
	size, err := e.broker.LogBytes()
	if err != nil {
		return err
	}
	for size < logAtRestart {
		topic, err := e.topic(ctx, "fill", 6, nil)
		if err != nil {
			return err
		}
		if err := fill(ctx, e, topic, logAtRestart-size); err != nil {
			return err
		}
		if size, err = e.broker.LogBytes(); err != nil {
			return err
		}
	}
	e.put("memory-after", e.broker.ResidentMB())
	e.put("log-size", float64(size)/1e9)
	topics := 0
	err = e.admin(ctx, func(ctx context.Context, adm *kadm.Client) error {
		m, err := adm.Metadata(ctx)
		topics = len(m.Topics)
		return err
	})
	if err != nil {
		return err
	}
	if err := e.broker.Kill(); err != nil {
		return err
	}
	began := time.Now()
	if err := e.broker.Start(ctx); err != nil {
		return err
	}
	err = e.admin(ctx, func(ctx context.Context, adm *kadm.Client) error { return led(ctx, adm, topics) })
	e.put("restart", milliseconds(time.Since(began)))
	return err
}

// fill writes at least that many bytes of records of 1 KB.
func fill(ctx context.Context, e *env, topic string, bytes int64) error {
	cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerLinger(5*time.Millisecond),
		kgo.MaxBufferedRecords(50_000), kgo.RecordPartitioner(kgo.StickyPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	value := letters(1000)
	first := kgo.AbortingFirstErrPromise(cl)
	for range bytes/1000 + 1 {
		cl.Produce(ctx, &kgo.Record{Value: value}, first.Promise())
	}
	return first.Err()
}
