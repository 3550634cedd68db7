package clients

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// The tests here are black-box cases that need a client library as it is. Package cases has those that speak raw
// requests, under the same kind of numbers.

// saramaConfig is that of an idempotent producer on the line.
func saramaConfig(line *rough) *sarama.Config {
	cfg := sarama.NewConfig()
	cfg.Version = sarama.MaxVersion
	cfg.Net.Proxy.Enable, cfg.Net.Proxy.Dialer = true, line
	cfg.Producer.Idempotent, cfg.Producer.RequiredAcks, cfg.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
	cfg.Producer.Return.Successes, cfg.Producer.Return.Errors = true, true
	cfg.Producer.Retry.Max, cfg.Producer.Retry.Backoff = 1000, 2*time.Millisecond
	cfg.Metadata.Retry.Max, cfg.Metadata.Retry.Backoff = 1000, 2*time.Millisecond
	return cfg
}

// franz is a franz-go client on the line.
func franz(t *testing.T, line *rough, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(line.b.Seeds()...), kgo.Dialer(line.DialContext), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(10 * time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 2 * time.Millisecond }),
	}, opts...)...)
	must(t, err)
	t.Cleanup(cl.Close)
	return cl
}

// makeTopic creates a topic past the line.
func makeTopic(t *testing.T, b *broker.Broker, topic string, partitions int32) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	must(t, err)
	defer cl.Close()
	_, err = kadm.NewClient(cl).CreateTopic(t.Context(), partitions, 1, nil, topic)
	must(t, err)
}

// contents reads a topic to its end as a committed reader, past the line.
func contents(t *testing.T, b *broker.Broker, topic string) map[int32][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords())
	must(t, err)
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(ctx, topic)
	must(t, err)
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	got := map[int32][]string{}
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		must(t, ctx.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				got[r.Partition] = append(got[r.Partition], string(r.Value))
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
	}
	return got
}

// counted says how many of 0, 1, 2, … a partition holds, each once and in order.
func counted(t *testing.T, what string, values []string) int {
	t.Helper()
	for i, v := range values {
		if v != strconv.Itoa(i) {
			t.Fatalf("%s: %s in the place of %d: lost, doubled or out of order", what, v, i)
		}
	}
	return len(values)
}

// TestP09IdempotentOnARoughLine: with requests in flight, retries and lost connections, the values of a partition rise
// strictly (redpanda#3826, sarama#3354, sarama#2619, sarama#1430, sarama#2860).
func TestP09IdempotentOnARoughLine(t *testing.T) {
	const n, partitions = 600, 3
	t.Run("sarama", func(t *testing.T) {
		t.Parallel()
		line := newRough(t, brokertest.Start(t), 12)
		makeTopic(t, line.b, "t", partitions)
		cfg := saramaConfig(line)
		cfg.Producer.Partitioner = sarama.NewManualPartitioner
		cfg.Producer.Flush.MaxMessages = 5 // many requests
		p, err := sarama.NewAsyncProducer(line.b.Seeds(), cfg)
		must(t, err)
		go func() {
			for i := range n {
				p.Input() <- &sarama.ProducerMessage{Topic: "t", Partition: int32(i % partitions), Value: sarama.StringEncoder(strconv.Itoa(i / partitions))}
			}
		}()
		for range n {
			select {
			case <-p.Successes():
			case e := <-p.Errors():
				t.Fatal(e)
			case <-time.After(patience):
				t.Fatal("no answer")
			}
		}
		cuts := line.smooth()
		must(t, p.Close())
		whole(t, line, n, partitions, cuts)
	})
	t.Run("franz-go", func(t *testing.T) {
		t.Parallel()
		line := newRough(t, brokertest.Start(t), 12)
		makeTopic(t, line.b, "t", partitions)
		cl := franz(t, line, kgo.DefaultProduceTopic("t"), kgo.ProducerLinger(0), kgo.MaxBufferedRecords(40))
		var failed atomic.Pointer[error]
		for i := range n {
			cl.Produce(t.Context(), &kgo.Record{Partition: int32(i % partitions), Value: []byte(strconv.Itoa(i / partitions))}, func(_ *kgo.Record, err error) {
				if err != nil {
					failed.Store(&err)
				}
			})
		}
		must(t, cl.Flush(t.Context()))
		if err := failed.Load(); err != nil {
			t.Fatal(*err)
		}
		whole(t, line, n, partitions, line.smooth())
	})
}

func whole(t *testing.T, line *rough, n, partitions, cuts int) {
	t.Helper()
	t.Logf("%d connections were cut", cuts)
	if cuts == 0 {
		t.Error("nothing was cut: the test shows nothing")
	}
	got, sum := contents(t, line.b, "t"), 0
	for p := range partitions {
		sum += counted(t, "partition "+strconv.Itoa(p), got[int32(p)])
	}
	if sum != n {
		t.Errorf("%d records are there, %d were acknowledged", sum, n)
	}
}

// TestP10ConcurrentSends: 50 parallel senders on one idempotent producer get no OUT_OF_ORDER_SEQUENCE_NUMBER, and what
// they sent is there once (kafkajs#598, kafkajs#1050, kafkajs#1172).
func TestP10ConcurrentSends(t *testing.T) {
	const senders, each = 50, 40
	run := func(t *testing.T, b *broker.Broker, send func(value string) error) {
		var wg sync.WaitGroup
		for s := range senders {
			wg.Go(func() {
				for i := range each {
					if err := send(strconv.Itoa(s*each + i)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		var got []int
		for _, values := range contents(t, b, "t") {
			for _, v := range values {
				n, err := strconv.Atoi(v)
				must(t, err)
				got = append(got, n)
			}
		}
		slices.Sort(got)
		if len(got) != senders*each || len(slices.Compact(got)) != senders*each {
			t.Errorf("%d records, %d different ones, want %d", len(got), len(slices.Compact(got)), senders*each)
		}
	}
	t.Run("sarama", func(t *testing.T) {
		t.Parallel()
		line := newRough(t, brokertest.Start(t), 0)
		makeTopic(t, line.b, "t", 2)
		p, err := sarama.NewSyncProducer(line.b.Seeds(), saramaConfig(line))
		must(t, err)
		run(t, line.b, func(value string) error {
			_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: "t", Value: sarama.StringEncoder(value)})
			return err
		})
		must(t, p.Close())
	})
	t.Run("franz-go", func(t *testing.T) {
		t.Parallel()
		line := newRough(t, brokertest.Start(t), 0)
		makeTopic(t, line.b, "t", 2)
		cl := franz(t, line, kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
		run(t, line.b, func(value string) error { return cl.ProduceSync(t.Context(), kgo.StringRecord(value)).FirstErr() })
	})
}

// TestP31FirstProduceToANewTopic: producers as clients make them by default, idempotent, write to a topic that their first
// request creates (tektite#200).
func TestP31FirstProduceToANewTopic(t *testing.T) {
	t.Run("sarama", func(t *testing.T) {
		t.Parallel()
		line := newRough(t, brokertest.Start(t), 0)
		p, err := sarama.NewSyncProducer(line.b.Seeds(), saramaConfig(line))
		must(t, err)
		_, at, err := p.SendMessage(&sarama.ProducerMessage{Topic: "new", Value: sarama.StringEncoder("0")})
		must(t, err)
		must(t, p.Close())
		if n := counted(t, "the new topic", contents(t, line.b, "new")[0]); n != 1 || at != 0 {
			t.Errorf("%d records, the first at %d", n, at)
		}
	})
	t.Run("franz-go", func(t *testing.T) {
		t.Parallel()
		line := newRough(t, brokertest.Start(t), 0)
		cl := franz(t, line, kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("new"))
		must(t, cl.ProduceSync(t.Context(), kgo.StringRecord("0")).FirstErr())
		if n := counted(t, "the new topic", contents(t, line.b, "new")[0]); n != 1 {
			t.Errorf("%d records", n)
		}
	})
}

// TestT49LineDeadBeyondTheTimeout: the line is dead until the coordinator has aborted the transaction for its time. The
// client can abort and go on, and nothing is lost without a word (librdkafka#3297, librdkafka#3575).
func TestT49LineDeadBeyondTheTimeout(t *testing.T) {
	for _, release := range []string{"", "v3.9", "v3.6"} {
		t.Run("franz-go at kafka"+release, func(t *testing.T) {
			t.Parallel()
			line := newRough(t, brokertest.Start(t), 0)
			makeTopic(t, line.b, "t", 1)
			opts := []kgo.Opt{kgo.TransactionalID("x"), kgo.TransactionTimeout(500 * time.Millisecond), kgo.DefaultProduceTopic("t")}
			if release != "" {
				opts = append(opts, kgo.MaxVersions(kversion.FromString(release)))
			}
			cl := franz(t, line, opts...)
			must(t, cl.BeginTransaction())
			must(t, cl.ProduceSync(t.Context(), kgo.StringRecord("lost with a word")).FirstErr())
			line.setDead(true)
			stable(t, line.b, 2) // the record and the marker of its abort
			line.setDead(false)
			if err := cl.EndTransaction(t.Context(), kgo.TryCommit); err == nil {
				t.Error("the commit of what was aborted is confirmed")
			}
			must(t, cl.EndTransaction(t.Context(), kgo.TryAbort))
			for i := range 3 {
				must(t, cl.BeginTransaction())
				must(t, cl.ProduceSync(t.Context(), kgo.StringRecord(strconv.Itoa(i))).FirstErr())
				must(t, cl.EndTransaction(t.Context(), kgo.TryCommit))
			}
			if n := counted(t, "afterwards", contents(t, line.b, "t")[0]); n != 3 {
				t.Errorf("%d of 3 records are there", n)
			}
		})
	}
	t.Run("sarama", func(t *testing.T) {
		t.Parallel()
		line := newRough(t, brokertest.Start(t), 0)
		makeTopic(t, line.b, "t", 1)
		cfg := saramaConfig(line)
		cfg.Producer.Transaction.ID, cfg.Producer.Transaction.Timeout = "x", 500*time.Millisecond
		p, err := sarama.NewSyncProducer(line.b.Seeds(), cfg)
		must(t, err)
		send := func(value string) error {
			_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: "t", Value: sarama.StringEncoder(value)})
			return err
		}
		must(t, p.BeginTxn())
		must(t, send("lost with a word"))
		line.setDead(true)
		stable(t, line.b, 2)
		line.setDead(false)
		if err := p.CommitTxn(); err == nil || p.TxnStatus()&sarama.ProducerTxnFlagFatalError != 0 {
			t.Fatalf("late commit: %v, status %v", err, p.TxnStatus())
		}
		must(t, p.AbortTxn())
		for i := range 3 {
			must(t, p.BeginTxn())
			must(t, send(strconv.Itoa(i)))
			must(t, p.CommitTxn())
		}
		must(t, p.Close())
		if n := counted(t, "afterwards", contents(t, line.b, "t")[0]); n != 3 {
			t.Errorf("%d of 3 records are there", n)
		}
	})
}
