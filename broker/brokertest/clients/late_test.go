package clients

import (
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/record"
)

// A client learns that the coordinator aborted its transaction when it goes on with it. Package txn says which codes it
// gets; docs/protocol.md, section "A commit that comes too late", what the clients of the field make of them.

// overdue is a franz-go producer at the versions of a release of Kafka ("" for the newest), whose transaction, with one
// record in it, was aborted by its timeout.
func overdue(t *testing.T, b *broker.Broker, release string) *kgo.Client {
	t.Helper()
	opts := []kgo.Opt{
		kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.TransactionalID("x"), kgo.TransactionTimeout(500 * time.Millisecond),
		kgo.DefaultProduceTopic("t"), kgo.AllowAutoTopicCreation(), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
	if release != "" {
		opts = append(opts, kgo.MaxVersions(kversion.FromString(release)))
	}
	c, err := kgo.NewClient(opts...)
	must(t, err)
	t.Cleanup(c.Close)
	must(t, c.BeginTransaction())
	must(t, c.ProduceSync(t.Context(), kgo.StringRecord("lost")).FirstErr())
	stable(t, b, 2) // the record and the marker of its abort
	return c
}

// stable waits until the last stable offset is what it is wanted to be.
func stable(t *testing.T, b *broker.Broker, want int64) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	must(t, err)
	defer c.Close()
	for limit := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		ends, err := kadm.NewClient(c).ListCommittedOffsets(t.Context(), "t")
		must(t, err)
		o, _ := ends.Lookup("t", 0)
		if o.Err == nil && o.Offset == want {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("last stable offset %+v, want %d", o, want)
		}
	}
}

// furtherTransaction aborts, and commits one more transaction with the same producer.
func furtherTransaction(t *testing.T, c *kgo.Client) {
	t.Helper()
	must(t, c.EndTransaction(t.Context(), kgo.TryAbort))
	must(t, c.BeginTransaction())
	must(t, c.ProduceSync(t.Context(), kgo.StringRecord("next")).FirstErr())
	must(t, c.EndTransaction(t.Context(), kgo.TryCommit))
}

// TestOffsetsAfterTimeoutAbort: TxnOffsetCommit of version 5, of which the Java client of version 2 makes
// sendOffsetsToTransaction, and the older ones. PRODUCER_FENCED, which Kafka answers, is the end of that client.
func TestOffsetsAfterTimeoutAbort(t *testing.T) {
	for _, v := range []struct {
		release string
		want    *kerr.Error
	}{
		{"", kerr.TransactionAbortable},
		{"v3.9", kerr.TransactionAbortable},
		{"v3.6", kerr.UnknownProducerID},
	} {
		t.Run("kafka"+v.release, func(t *testing.T) {
			t.Parallel()
			b := brokertest.Start(t)
			c := overdue(t, b, v.release)
			pid, epoch, err := c.ProducerID(t.Context())
			must(t, err)
			req := kmsg.NewPtrTxnOffsetCommitRequest()
			req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = "x", "g", pid, epoch, -1
			p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
			p.Offset = 1
			topic := kmsg.NewTxnOffsetCommitRequestTopic()
			topic.Topic, topic.TopicID, topic.Partitions = "t", topicID(t, c), append(topic.Partitions, p)
			req.Topics = append(req.Topics, topic)
			resp, err := req.RequestWith(t.Context(), c)
			must(t, err)
			if code := resp.Topics[0].Partitions[0].ErrorCode; code != v.want.Code {
				t.Fatalf("TxnOffsetCommit %d: %v, want %v", resp.Version, kerr.ErrorForCode(code), v.want)
			}
			// franz-go has not seen that answer: its commit tells it.
			if err := c.EndTransaction(t.Context(), kgo.TryCommit); err == nil {
				t.Fatal("late commit was taken")
			}
			furtherTransaction(t, c)
			stable(t, b, 4)
		})
	}
}

func topicID(t *testing.T, c *kgo.Client) [16]byte {
	t.Helper()
	topics, err := kadm.NewClient(c).ListTopics(t.Context(), "t")
	must(t, err)
	return topics["t"].ID
}

// TestProduceAfterTimeoutAbort: below version 12 the answer is UNKNOWN_PRODUCER_ID: INVALID_PRODUCER_EPOCH is the end of
// a librdkafka producer. It carries the log start offset, because a Java client repeats the batch until its delivery
// timeout when that is -1.
func TestProduceAfterTimeoutAbort(t *testing.T) {
	for _, v := range []struct {
		release string
		want    *kerr.Error
	}{
		{"", kerr.InvalidProducerEpoch},
		{"v3.6", kerr.UnknownProducerID},
		{"v0.11", kerr.InvalidProducerEpoch}, // Produce 3 has no field for the log start offset
	} {
		t.Run("kafka"+v.release, func(t *testing.T) {
			t.Parallel()
			b := brokertest.Start(t)
			c := overdue(t, b, v.release)
			pid, epoch, err := c.ProducerID(t.Context())
			must(t, err)
			resp := produce(t, c, pid, epoch)
			got := resp.Topics[0].Partitions[0]
			if got.ErrorCode != v.want.Code {
				t.Fatalf("Produce %d: %v, want %v", resp.Version, kerr.ErrorForCode(got.ErrorCode), v.want)
			}
			if v.want == kerr.UnknownProducerID && got.LogStartOffset != 0 {
				t.Fatalf("Produce %d: log start offset %d, want 0", resp.Version, got.LogStartOffset)
			}
			stable(t, b, 2)
		})
	}
}

// produce sends one more record of the transaction, past the client's own bookkeeping.
func produce(t *testing.T, c *kgo.Client, pid int64, epoch int16) *kmsg.ProduceResponse {
	t.Helper()
	var batch record.Builder
	batch.Reset(record.BuilderOptions{Producer: &record.Producer{ID: pid, Epoch: epoch, Sequence: 1}, Transactional: true})
	batch.Append(time.Now().UnixMilli(), nil, []byte("late"), nil)
	raw, err := batch.Batch()
	must(t, err)
	id := "x"
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TransactionID, req.TimeoutMillis = -1, &id, 10_000
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = "t", topicID(t, c)
	topic.Partitions = append(topic.Partitions, kmsg.ProduceRequestTopicPartition{Records: raw})
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(t.Context(), c)
	must(t, err)
	return resp
}

// TestSaramaOffsetsAfterTimeoutAbort: Sarama sends the offsets with the commit.
func TestSaramaOffsetsAfterTimeoutAbort(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, brokertest.OnTCP())
	cfg := sarama.NewConfig()
	cfg.Version = sarama.MaxVersion
	cfg.Producer.Idempotent, cfg.Producer.RequiredAcks, cfg.Net.MaxOpenRequests = true, sarama.WaitForAll, 1
	cfg.Producer.Return.Successes = true
	cfg.Producer.Transaction.ID, cfg.Producer.Transaction.Timeout = "x", 500*time.Millisecond
	p, err := sarama.NewSyncProducer([]string{b.Addr().String()}, cfg)
	must(t, err)
	defer p.Close()
	send := func(value string) {
		_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: "t", Value: sarama.StringEncoder(value)})
		must(t, err)
	}
	must(t, p.BeginTxn())
	send("lost")
	stable(t, b, 2)
	must(t, p.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{"t": {{Partition: 0, Offset: 1}}}, "g"))
	if err := p.CommitTxn(); err == nil || p.TxnStatus()&sarama.ProducerTxnFlagFatalError != 0 {
		t.Fatalf("late commit: %v, status %v", err, p.TxnStatus())
	}
	must(t, p.AbortTxn())
	for i := range 2 {
		must(t, p.BeginTxn())
		send(fmt.Sprint("next ", i))
		must(t, p.CommitTxn())
	}
	stable(t, b, 6)
}
