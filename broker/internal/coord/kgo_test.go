package coord_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

const txnTimeout = 500 * time.Millisecond

// timedOut is a franz-go producer whose transaction the coordinator has aborted for its
// time, with one record in it.
func timedOut(t *testing.T, b *broker.Broker, version string) *kgo.Client {
	t.Helper()
	opts := []kgo.Opt{
		kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.TransactionalID(t.Name()),
		kgo.TransactionTimeout(txnTimeout), kgo.DefaultProduceTopic("t"), kgo.AllowAutoTopicCreation(), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
	if version != "" {
		v := kversion.FromString(version)
		opts = append(opts, kgo.MaxVersions(v))
	}
	c, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := c.ProduceSync(t.Context(), kgo.StringRecord("late")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	stableAt(t, b, 2) // behind the record and the marker of its abort
	return c
}

// goOn aborts and commits a further transaction, whose record alone may be visible.
func goOn(t *testing.T, b *broker.Broker, c *kgo.Client) {
	t.Helper()
	if err := c.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatalf("abort: %v", err)
	}
	for i := range 3 {
		if err := c.BeginTransaction(); err != nil {
			t.Fatalf("begin: %v", err)
		}
		if err := c.ProduceSync(t.Context(), kgo.StringRecord(fmt.Sprint("next ", i))).FirstErr(); err != nil {
			t.Fatalf("produce: %v", err)
		}
		if err := c.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatalf("commit: %v", err)
		}
	}
	r, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.ConsumeTopics("t"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	for len(got) < 3 {
		fs := r.PollFetches(t.Context())
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		fs.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	if want := []string{"next 0", "next 1", "next 2"}; !slices.Equal(got, want) {
		t.Fatalf("read committed %q, want %q", got, want)
	}
}

// TestClientGoesOnAfterTimeout: franz-go, under both transaction versions, can abort and
// go on when its transaction was aborted by the coordinator: whether it learns of that by
// a commit or by a produce.
func TestClientGoesOnAfterTimeout(t *testing.T) {
	for _, v := range []struct {
		name, version string
		commit        *kerr.Error
		produce       *kerr.Error
	}{
		{"version2", "", kerr.TransactionAbortable, kerr.InvalidProducerEpoch},
		{"version1", "v3.9", kerr.UnknownProducerID, kerr.UnknownProducerID},
	} {
		t.Run(v.name+"/commit", func(t *testing.T) {
			t.Parallel()
			b := brokertest.Start(t)
			c := timedOut(t, b, v.version)
			if err := c.EndTransaction(t.Context(), kgo.TryCommit); !errors.Is(err, v.commit) {
				t.Fatalf("late commit: %v, want %v", err, v.commit)
			}
			goOn(t, b, c)
		})
		t.Run(v.name+"/produce", func(t *testing.T) {
			t.Parallel()
			b := brokertest.Start(t)
			c := timedOut(t, b, v.version)
			if err := c.ProduceSync(t.Context(), kgo.StringRecord("zombie")).FirstErr(); !errors.Is(err, v.produce) {
				t.Fatalf("late produce: %v, want %v", err, v.produce)
			}
			goOn(t, b, c)
		})
	}
}
