package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/benchmarks/figures"
)

// transactionWork commits transactions of ten records, each client with its own transactional id.
func transactionWork() []workload {
	var out []workload
	for _, clients := range []int{1, 8, 32} {
		name := fmt.Sprintf("txn-%d", clients)
		what := fmt.Sprintf("transactions of 10 records, %s", counted(clients, "client"))
		out = append(out, workload{name: "transactions", extra: 20 * time.Second, figures: []figures.Figure{
			figures.More(name, what, "txn/s"),
			figures.Less(name+"-p50", what+": p50", "ms"),
			figures.Less(name+"-p99", what+": p99", "ms"),
			figures.Less(name+"-first", what+": until each has committed its first", "ms"),
			figures.Less(name+"-cpu", what+": broker CPU per transaction", "µs"),
		}, run: func(ctx context.Context, e *env) error {
			topic, err := e.topic(ctx, "txn", 6, nil)
			if err != nil {
				return err
			}
			o, err := eachClient(ctx, e, clients, func(ctx context.Context, i int, once func(func() error) bool) error {
				return tenAtATime(ctx, e, topic, i, once)
			})
			if err != nil {
				return err
			}
			e.put(name, o.perSecond)
			e.put(name+"-p50", o.all.at(0.50))
			e.put(name+"-p99", o.all.at(0.99))
			e.put(name+"-first", milliseconds(o.first))
			e.putPer(name+"-cpu", o.cpu, o.operations)
			return nil
		}})
	}
	return out
}

func tenAtATime(ctx context.Context, e *env, topic string, i int, once func(func() error) bool) error {
	cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0), kgo.TransactionalID(fmt.Sprintf("%s-%d", topic, i)),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer cl.Close()
	value := letters(100)
	for once(func() error {
		if err := cl.BeginTransaction(); err != nil {
			return err
		}
		records := make([]*kgo.Record, 10)
		for k := range records {
			records[k] = &kgo.Record{Partition: int32(i % 6), Value: value}
		}
		if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
			return err
		}
		return cl.EndTransaction(ctx, kgo.TryCommit)
	}) {
	}
	return nil
}
