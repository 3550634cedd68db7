package group_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// saramaDialer lets Sarama reach a broker in memory.
type saramaDialer struct{ b *broker.Broker }

// Dial implements proxy.Dialer.
func (d saramaDialer) Dial(network, addr string) (net.Conn, error) {
	return d.b.Dial(context.Background(), network, addr)
}

// saramaMember is a static member that copies "in" to "out", each record in a
// transaction with its offset. Sarama speaks transactions of version 1 and says
// which member of the group commits (KIP-447).
type saramaMember struct {
	t        *testing.T
	id       string
	group    sarama.ConsumerGroup
	producer sarama.SyncProducer
	mu       sync.Mutex // the producer has one transaction at a time
	sessions atomic.Int64
	stop     context.CancelFunc
	done     sync.WaitGroup
}

func startSarama(t *testing.T, b *broker.Broker, id string) *saramaMember {
	t.Helper()
	config := func() *sarama.Config {
		c := sarama.NewConfig()
		c.Version = sarama.MaxVersion
		c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, saramaDialer{b}
		return c
	}
	consumer := config()
	consumer.Consumer.Group.InstanceId = id
	consumer.Consumer.Group.Session.Timeout = 30 * time.Second
	consumer.Consumer.Group.Heartbeat.Interval = 50 * time.Millisecond
	consumer.Consumer.Offsets.Initial = sarama.OffsetOldest
	consumer.Consumer.Offsets.AutoCommit.Enable = false
	consumer.Consumer.IsolationLevel = sarama.ReadCommitted
	producer := config()
	producer.Producer.Idempotent, producer.Producer.Return.Successes = true, true
	producer.Producer.RequiredAcks, producer.Net.MaxOpenRequests = sarama.WaitForAll, 1
	producer.Producer.Transaction.ID = "copy-" + id
	m := &saramaMember{t: t, id: id}
	var err error
	if m.group, err = sarama.NewConsumerGroup(b.Seeds(), "g", consumer); err != nil {
		t.Fatal(err)
	}
	if m.producer, err = sarama.NewSyncProducer(b.Seeds(), producer); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.done.Go(func() {
		for ctx.Err() == nil {
			if err := m.group.Consume(ctx, []string{"in"}, m); err != nil {
				t.Errorf("%s: consume: %v", id, err)
				return
			}
		}
	})
	return m
}

func (m *saramaMember) close() {
	m.t.Helper()
	m.stop()
	m.done.Wait()
	if err := m.group.Close(); err != nil {
		m.t.Error(err)
	}
	if err := m.producer.Close(); err != nil {
		m.t.Error(err)
	}
}

// Setup implements sarama.ConsumerGroupHandler.
func (m *saramaMember) Setup(sarama.ConsumerGroupSession) error { m.sessions.Add(1); return nil }

// Cleanup implements sarama.ConsumerGroupHandler.
func (m *saramaMember) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim implements sarama.ConsumerGroupHandler.
func (m *saramaMember) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	who := sarama.NewConsumerGroupMetadataFromSession(s, "g", &m.id)
	for {
		select {
		case msg, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			if err := m.copy(msg, who); err != nil {
				m.t.Errorf("%s: %v", m.id, err)
				return err
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

func (m *saramaMember) copy(msg *sarama.ConsumerMessage, who *sarama.ConsumerGroupMetadata) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.producer.BeginTxn(); err != nil {
		return err
	}
	if _, _, err := m.producer.SendMessage(&sarama.ProducerMessage{Topic: "out", Value: sarama.ByteEncoder(msg.Value)}); err != nil {
		return err
	}
	if err := m.producer.AddMessageToTxnWithGroupMetadata(msg, who, nil); err != nil {
		return err
	}
	return m.producer.CommitTxn()
}

// TestSaramaStaticMembersInTransactions: two static members of Sarama copy records
// in transactions; one is restarted, and the other keeps its session. Every record
// is copied once.
func TestSaramaStaticMembersInTransactions(t *testing.T) {
	b := brokertest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cl := client(t, b)
	createTopic(t, cl, "in", 4)
	createTopic(t, cl, "out", 1)
	seen := newTally()
	reader := client(t, b, kgo.ConsumeTopics("out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(100*time.Millisecond))
	reading, stopReading := context.WithCancel(ctx)
	var reads sync.WaitGroup
	reads.Go(func() {
		for reading.Err() == nil {
			seen.add(fetched(t, reader.PollFetches(reading)))
		}
	})
	in := &feed{cl: cl}
	one, two := startSarama(t, b, "one"), startSarama(t, b, "two")
	for one.sessions.Load() == 0 || two.sessions.Load() == 0 {
		in.some(t, 5)
		seen.await(t, ctx, in.next)
	}
	sessions := two.sessions.Load()
	one.close()
	one = startSarama(t, b, "one")
	for one.sessions.Load() == 0 {
		in.some(t, 5)
	}
	in.some(t, 100)
	seen.await(t, ctx, in.next)
	if now := two.sessions.Load(); now != sessions {
		t.Errorf("the other member had %d sessions, now %d: there was a rebalance", sessions, now)
	}
	one.close()
	two.close()
	stopReading()
	reads.Wait()
	seen.exactly(t, in.next)
	if sum := committedSum(t, cl, "g", "in", 4); sum != int64(in.next) {
		t.Errorf("offsets of %d records are committed, want %d", sum, in.next)
	}
}
