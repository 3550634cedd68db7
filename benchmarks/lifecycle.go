package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func benchStart(_ context.Context, e *env) error {
	if e.broker == nil {
		return nil
	}
	e.less("start on a fresh folder to first answered request", milliseconds(e.broker.ready), "ms")
	e.less("memory, idle", e.broker.residentMB(), "MB")
	return nil
}

// benchTopics creates a thousand topics and writes the first record of each.
func benchTopics(ctx context.Context, e *env) error {
	const topics = 1000
	cl, err := e.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	names := make([]string, topics)
	run := time.Now().UnixNano()
	for i := range names {
		names[i] = fmt.Sprintf("bench-many-%d-%d", run, i)
	}
	began := time.Now()
	resp, err := kadm.NewClient(cl).CreateTopics(ctx, 1, 1, nil, names...)
	if err == nil {
		err = resp.Error()
	}
	if err != nil {
		return err
	}
	e.less("1,000 topics: create", milliseconds(time.Since(began)), "ms")
	began = time.Now()
	records := make([]*kgo.Record, topics)
	for i := range records {
		records[i] = &kgo.Record{Topic: names[i], Value: []byte("first")}
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	e.less("1,000 topics: first record in each", milliseconds(time.Since(began)), "ms")
	if e.broker != nil {
		e.less("1,000 topics: open files", float64(e.broker.openFiles()), "files")
	}
	return nil
}

// benchRestart kills the broker with what the workloads before have left in its log and times the next start.
func benchRestart(ctx context.Context, e *env) error {
	if e.broker == nil {
		return nil
	}
	e.less("memory after the load above", e.broker.residentMB(), "MB")
	size, err := e.broker.logBytes()
	if err != nil {
		return err
	}
	e.more("log in the data folder at the kill", float64(size)/1e9, "GB")
	if err := e.broker.kill(); err != nil {
		return err
	}
	if err := e.broker.start(ctx); err != nil {
		return err
	}
	e.less("ready again after kill -9", milliseconds(e.broker.ready), "ms")
	return nil
}
