package holes

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/txn/session"
	"github.com/millrace/millrace/txn/twophase"
)

// TestUnsyncedIsNotAcknowledged takes the power away between the write of a record and its fsync, which the disk refuses, and
// asks what the producer was told. With acks=0 it is told nothing, with acks=1 that all is well: both are lost. With acks=all
// it hears no acknowledgement.
func TestUnsyncedIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		acks kgo.Acks
		told bool // that all is well
	}{
		{"acks=0", kgo.NoAck(), true},
		{"acks=1", kgo.LeaderAck(), true},
		{"acks=all", kgo.AllISRAcks(), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			lost := false
			for seed := uint64(1); seed <= 40 && !lost; seed++ {
				n := brokertest.StartNode(t)
				createTopic(t, n)
				cl := client(t, n, kgo.RequiredAcks(c.acks), kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.RecordDeliveryTimeout(5*time.Second))
				n.FailDisk("sync", "")
				err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr()
				if c.told != (err == nil) {
					t.Fatalf("without a sync the producer is told: %v", err)
				}
				n.Crash(t, seed)
				lost = end(t, n) == 0
			}
			if !lost {
				t.Error("the record outlived every power cut: the test shows nothing")
			}
		})
	}
}

// TestOurWritersAskForAll looks at the wire: no writer of this module asks for less than acks=all on its own.
func TestOurWritersAskForAll(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(context.Context, *line) error{
		"txn/session": func(ctx context.Context, l *line) (err error) {
			cluster, err := session.Connect(ctx, session.ClusterOptions{Seeds: l.Seeds(), Dial: l.Dial})
			if err != nil {
				return err
			}
			defer cluster.Close()
			p, err := cluster.NewProducer(ctx, session.ProducerOptions{TransactionalID: "x"})
			if err != nil {
				return err
			}
			if err := p.Send(ctx, &session.Record{Topic: "t", Partition: 0, Value: []byte("v")}, nil); err != nil {
				return err
			}
			return errors.Join(p.Commit(ctx, nil, session.Generation{}), p.Close(ctx))
		},
		"txn/twophase": func(ctx context.Context, l *line) error {
			c, err := twophase.OpenStoreDecides(ctx, l, nothing{}, twophase.Options{TransactionalID: "x"})
			if err != nil {
				return err
			}
			defer c.Close()
			return c.Do(ctx, func(tx *twophase.Txn[struct{}]) error {
				return tx.Send(ctx, session.Record{Topic: "t", Partition: 0, Value: []byte("v")})
			})
		},
		"franz-go, on which the rest is built, as it comes": func(ctx context.Context, l *line) error {
			return client(t, l).ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr()
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := &line{node: brokertest.StartNode(t, brokertest.Configure(func(c *broker.Config) { c.TransactionTwoPhaseCommit = true }))}
			createTopic(t, l.node)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := write(ctx, l); err != nil {
				t.Fatal(err)
			}
			asked := l.asked()
			if len(asked) == 0 || slices.ContainsFunc(asked, func(a int16) bool { return a != -1 }) {
				t.Errorf("Produce requests with acks %v, want -1 alone", asked)
			}
		})
	}
}

// nothing is a store that takes part without having anything.
type nothing struct{}

func (nothing) Claim(context.Context, string, string) (s twophase.PreparedState, err error) { return }

func (nothing) Commit(_ context.Context, _, _ string, work func(struct{}) (twophase.PreparedState, error)) error {
	_, err := work(struct{}{})
	return err
}

// TestLostAcknowledgement lets a record become durable and its acknowledgement get lost: with the connection, or because the
// broker loses its power right then. The producer sends it again, and it is there once.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	for _, powerCut := range []bool{false, true} {
		t.Run(map[bool]string{false: "the connection breaks", true: "the power fails"}[powerCut], func(t *testing.T) {
			t.Parallel()
			l := &line{node: brokertest.StartNode(t)}
			createTopic(t, l.node)
			cl := client(t, l, kgo.ProducerLinger(0))
			held := 0
			for i := range 6 { // one more than the broker remembers of a producer
				l.mu.Lock()
				l.hold = func() {
					held++
					for end(t, l.node) < int64(i)+1 {
					}
					if powerCut {
						l.node.Crash(t, uint64(i))
					}
				}
				l.mu.Unlock()
				if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte{byte('0' + i)}}).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			if sent := len(l.asked()); held != 6 || sent < 12 {
				t.Fatalf("%d answers were held back, %d requests sent: the test shows nothing", held, sent)
			}
			var got []byte
			reader := client(t, l.node, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().AtStart()}}))
			for last := end(t, l.node); int64(len(got)) < last; {
				fetches := reader.PollFetches(t.Context())
				if err := fetches.Err(); err != nil {
					t.Fatal(err)
				}
				fetches.EachRecord(func(r *kgo.Record) { got = append(got, r.Value...) })
			}
			if string(got) != "012345" {
				t.Errorf("the log holds %q", got)
			}
		})
	}
}
