package runtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// purger deletes the records of repartition topics that a commit has consumed.
// It only ever sees committed positions: records purged before the commit that
// consumed them would be lost if that commit failed (KAFKA-17635). One request is
// on its way at a time; a failed one is made up for by the next.
type purger struct {
	admin    *kgo.Client
	interval time.Duration
	log      *slog.Logger
	last     time.Time
	purged   map[string]map[int32]int64

	ctx  context.Context
	stop context.CancelFunc
	busy chan struct{} // capacity 1: held while a request is on its way
	done sync.WaitGroup
}

func newPurger(admin *kgo.Client, interval time.Duration, log *slog.Logger) *purger {
	p := &purger{admin: admin, interval: interval, log: log, purged: map[string]map[int32]int64{}, busy: make(chan struct{}, 1), last: time.Now()}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// offer purges what is due. The worker calls it after each commit.
func (p *purger) offer(tasks []*active) {
	if time.Since(p.last) < p.interval {
		return
	}
	select {
	case p.busy <- struct{}{}:
	default:
		return
	}
	p.last = time.Now()
	req := p.build(tasks)
	if req == nil {
		<-p.busy
		return
	}
	p.done.Add(1)
	go func() {
		defer p.done.Done()
		defer func() { <-p.busy }()
		p.send(req)
	}()
}

// build lists the internal inputs that have moved since the last purge.
func (p *purger) build(tasks []*active) *kmsg.DeleteRecordsRequest {
	topics := map[string]*kmsg.DeleteRecordsRequestTopic{}
	for _, a := range tasks {
		for _, in := range a.inputs {
			if !in.internal || in.committed <= p.purged[in.topic.Topic][in.topic.Partition] {
				continue
			}
			t := topics[in.topic.Topic]
			if t == nil {
				fresh := kmsg.NewDeleteRecordsRequestTopic()
				fresh.Topic = in.topic.Topic
				t = &fresh
				topics[in.topic.Topic] = t
			}
			rp := kmsg.NewDeleteRecordsRequestTopicPartition()
			rp.Partition, rp.Offset = in.topic.Partition, in.committed
			t.Partitions = append(t.Partitions, rp)
			if p.purged[in.topic.Topic] == nil {
				p.purged[in.topic.Topic] = map[int32]int64{}
			}
			p.purged[in.topic.Topic][in.topic.Partition] = in.committed
		}
	}
	if len(topics) == 0 {
		return nil
	}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis = 10_000
	for _, t := range topics {
		req.Topics = append(req.Topics, *t)
	}
	return req
}

func (p *purger) send(req *kmsg.DeleteRecordsRequest) {
	ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
	defer cancel()
	resp, err := req.RequestWith(ctx, p.admin)
	if err != nil {
		if p.ctx.Err() == nil {
			p.log.Warn("purge of repartition topics", "error", err)
		}
		return
	}
	for _, t := range resp.Topics {
		for _, rp := range t.Partitions {
			if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {
				p.log.Warn("purge", "topic", t.Topic, "partition", rp.Partition, "error", err)
			}
		}
	}
}

// close waits for the request that is on its way, after cancelling it.
func (p *purger) close() {
	p.stop()
	p.done.Wait()
}
