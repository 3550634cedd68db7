package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// benchTransactions commits transactions of ten records, each client with its own transactional id.
func benchTransactions(ctx context.Context, e *env) error {
	for _, clients := range []int{1, 8, 32} {
		topic, err := e.topic(ctx, "txn", 6, nil)
		if err != nil {
			return err
		}
		n, lat, err := eachClient(ctx, e, clients, func(ctx context.Context, i int, once func(func() error) bool) error {
			cl, err := e.client(kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(0), kgo.TransactionalID(fmt.Sprintf("%s-%d", topic, i)),
				kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			if err != nil {
				return err
			}
			defer cl.Close()
			value := make([]byte, 100)
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
		})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("transactions of 10 records, %d clients", clients)
		e.more(name, n, "txn/s")
		e.less(name+": p50", lat.at(0.50), "ms")
		e.less(name+": p99", lat.at(0.99), "ms")
	}
	return nil
}

// benchPipeline consumes, transforms, produces and commits in transactions of 100 ms.
func benchPipeline(ctx context.Context, e *env) error {
	in, err := e.topic(ctx, "in", 4, nil)
	if err != nil {
		return err
	}
	out, err := e.topic(ctx, "out", 4, nil)
	if err != nil {
		return err
	}
	total, _, err := produceFor(ctx, e, in, 100)
	if err != nil {
		return err
	}
	s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(e.seeds...), kgo.TransactionalID(out), kgo.ConsumerGroup(out), kgo.ConsumeTopics(in),
		kgo.DefaultProduceTopic(out), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(500_000),
		kgo.RecordPartitioner(kgo.StickyPartitioner()))
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var done int64
	var began time.Time
	for done < total {
		if err := s.Begin(); err != nil {
			return err
		}
		var inTxn int64
		for txnBegan := time.Now(); time.Since(txnBegan) < 100*time.Millisecond && done+inTxn < total; {
			fs := s.PollFetches(ctx)
			if err := fs.Err0(); err != nil {
				return fmt.Errorf("after %d of %d records: %w", done, total, err)
			}
			if began.IsZero() {
				began = time.Now()
			}
			fs.EachRecord(func(r *kgo.Record) {
				inTxn++
				s.Produce(ctx, &kgo.Record{Key: r.Key, Value: r.Value}, nil)
			})
		}
		ok, err := s.End(ctx, kgo.TryCommit)
		if err != nil {
			return err
		}
		if ok {
			done += inTxn
		}
	}
	took := time.Since(began)
	e.more("consume-transform-produce-commit, 100 ms transactions", float64(done)/took.Seconds(), "rec/s")
	return nil
}
