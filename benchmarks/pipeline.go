package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/benchmarks/figures"
)

func pipelineWork() []workload {
	const what = "consume, transform, produce, commit in 100 ms transactions"
	return []workload{{name: "pipeline", extra: 60 * time.Second, figures: []figures.Figure{
		figures.More("pipeline", what, "rec/s"),
		figures.Less("pipeline-cpu", what+": broker CPU per record", "µs"),
	}, run: pipeline}}
}

// pipeline consumes, transforms, produces and commits in transactions of 100 ms.
func pipeline(ctx context.Context, e *env) error {
	in, err := e.topic(ctx, "in", 4, nil)
	if err != nil {
		return err
	}
	out, err := e.topic(ctx, "out", 4, nil)
	if err != nil {
		return err
	}
	input, err := produceFor(ctx, e, in, 100, e.seconds/2)
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
	var done int64
	var began time.Time // at the first record: joining the group is not the work
	var cpu time.Duration
	for done < input.total {
		if err := s.Begin(); err != nil {
			return err
		}
		var inTxn int64
		for txnBegan := time.Now(); time.Since(txnBegan) < 100*time.Millisecond && done+inTxn < input.total; {
			fs, err := pollFor(ctx, s, 100*time.Millisecond)
			if err != nil {
				return fmt.Errorf("after %d of %d records: %w", done, input.total, err)
			}
			if began.IsZero() && fs.NumRecords() > 0 {
				began, cpu = time.Now(), e.cpu()
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
	e.put("pipeline", float64(done)/time.Since(began).Seconds())
	e.putPer("pipeline-cpu", e.cpu()-cpu, float64(done))
	return nil
}

// pollFor polls, and comes back without records after a while: a transaction must not wait longer than it may last.
func pollFor(ctx context.Context, s *kgo.GroupTransactSession, wait time.Duration) (kgo.Fetches, error) {
	poll, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	fs := s.PollFetches(poll)
	if err := fs.Err0(); err != nil && !(errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil) {
		return nil, err
	}
	return fs, nil
}
