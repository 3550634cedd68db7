package broker_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/txn/twophase"
	"github.com/millrace/millrace/txn/wire"
)

// said is a log that a test reads while the broker writes.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) count(part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.b.String(), part)
}

// TestTwoPhaseHasNoTimeout: a month goes by over a transaction of two-phase commit, and the log says so again and again. Then
// it is taken over and committed.
func TestTwoPhaseHasNoTimeout(t *testing.T) {
	t.Parallel()
	var log said
	clk := clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	b := brokertest.Start(t, brokertest.WithClock(clk), brokertest.Configure(func(c *broker.Config) {
		c.TransactionTwoPhaseCommit = true
		c.TransactionNoticeAfter = 10 * 24 * time.Hour
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}))
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.MaxVersions(wire.AllowInitProducerID6(kversion.Stable())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	a := &aged{T: t, b: b, clk: clk, cl: cl}
	id := "two-phase"
	init := func(keep bool) (resp *wire.InitProducerIDResponse) {
		a.await("an answer of the coordinator", func() bool {
			req := wire.NewInitProducerIDRequest()
			req.TransactionalID, req.TransactionTimeoutMillis, req.Enable2PC, req.KeepPreparedTxn = &id, 1000, true, keep
			r, err := cl.Broker(1).RetriableRequest(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			resp = r.(*wire.InitProducerIDResponse)
			return resp.ErrorCode == 0
		})
		return resp
	}
	a.create("t")
	began := init(false)
	if _, code := a.produce("t", id, began.ProducerID, began.ProducerEpoch, 0); code != 0 {
		t.Fatalf("Produce: error %d", code)
	}
	const notice = "waits for its decision"
	for month := 1; month <= 3; month++ {
		clk.Jump(10*24*time.Hour + time.Second)
		a.await("a line in the log", func() bool { return log.count(notice) == month })
	}
	undecided := func(kept bool) {
		t.Helper()
		list, err := b.Undecided(t.Context())
		if err != nil || len(list) != 1 || list[0].TransactionalID != id || list[0].ProducerID != began.ProducerID || list[0].Kept != kept ||
			list[0].Partitions != 1 || clk.Now().Sub(list[0].Began) < 30*24*time.Hour {
			t.Fatalf("undecided: %+v, %v", list, err)
		}
	}
	undecided(false)
	kept := init(true)
	undecided(true)
	if kept.OngoingTxnProducerID != began.ProducerID || kept.OngoingTxnProducerEpoch != began.ProducerEpoch || kept.ProducerEpoch != began.ProducerEpoch+1 {
		t.Fatalf("began as %d:%d, kept: %+v", began.ProducerID, began.ProducerEpoch, kept)
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = id, kept.ProducerID, kept.ProducerEpoch, true
	if r := ask1[*kmsg.EndTxnResponse](a, end); r.ErrorCode != 0 || twophase.NewPreparedState(r.ProducerID, r.ProducerEpoch).Epoch() != began.ProducerEpoch+2 {
		t.Fatalf("commit: %+v", r)
	}
	if list, err := b.Undecided(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("undecided at the end: %+v, %v", list, err)
	}
}
