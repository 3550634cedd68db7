package coord_test

import (
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// TestSaramaGoesOnAfterTimeout is TestClientGoesOnAfterTimeout with Sarama, which speaks
// version 1.
func TestSaramaGoesOnAfterTimeout(t *testing.T) {
	for name, late := range map[string]func(p sarama.SyncProducer) error{
		"commit":  func(p sarama.SyncProducer) error { return p.CommitTxn() },
		"produce": func(p sarama.SyncProducer) error { return send(p, "zombie") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.Start(t, brokertest.OnTCP())
			c := sarama.NewConfig()
			c.Version = sarama.V3_6_0_0
			c.Producer.Idempotent = true
			c.Producer.Transaction.ID = "s"
			c.Producer.Transaction.Timeout = txnTimeout
			c.Producer.RequiredAcks = sarama.WaitForAll
			c.Producer.Return.Successes = true
			c.Net.MaxOpenRequests = 1
			p, err := sarama.NewSyncProducer([]string{b.Addr().String()}, c)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if err := errors.Join(p.BeginTxn(), send(p, "late")); err != nil {
				t.Fatal(err)
			}
			stableAt(t, b, 2) // behind the record and the marker of its abort
			if err := late(p); err == nil || p.TxnStatus()&sarama.ProducerTxnFlagFatalError != 0 {
				t.Fatalf("late %s: %v, status %v", name, err, p.TxnStatus())
			}
			if err := p.AbortTxn(); err != nil {
				t.Fatalf("abort: %v", err)
			}
			for range 3 {
				if err := errors.Join(p.BeginTxn(), send(p, "next"), p.CommitTxn()); err != nil {
					t.Fatal(err)
				}
			}
			stableAt(t, b, 8)
		})
	}
}

func send(p sarama.SyncProducer, value string) error {
	_, _, err := p.SendMessage(&sarama.ProducerMessage{Topic: "t", Partition: 0, Value: sarama.StringEncoder(value)})
	return err
}

// stableAt waits until the last stable offset of the one partition is what it is wanted
// to be.
func stableAt(t *testing.T, b *broker.Broker, want int64) {
	t.Helper()
	r, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for limit := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		ends, err := kadm.NewClient(r).ListCommittedOffsets(t.Context(), "t")
		if err != nil {
			t.Fatal(err)
		}
		o, _ := ends.Lookup("t", 0)
		if o.Err == nil && o.Offset == want {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("last stable offset is %+v, want %d", o, want)
		}
	}
}
