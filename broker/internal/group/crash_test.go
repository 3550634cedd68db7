package group_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
)

// committer commits growing offsets of one partition on one connection.
type committer struct {
	w           *wire
	group       string
	acked, sent atomic.Int64
}

// commit commits the next offset.
func (c *committer) commit() (code int16, err error) {
	r := kmsg.NewPtrOffsetCommitRequest()
	r.Version, r.Group, r.Generation = 7, c.group, -1
	r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "in", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: c.sent.Add(1)}}}}
	resp, err := c.w.do(r)
	if err != nil {
		return 0, err
	}
	code = resp.(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
	if code == 0 {
		c.acked.Store(c.sent.Load())
	}
	return code, nil
}

// fetch reads the offset back; it waits while the coordinator loads.
func (c *committer) fetch(w *wire) (offset int64, err error) {
	r := kmsg.NewPtrOffsetFetchRequest()
	r.Version, r.Group, r.RequireStable = 7, c.group, true
	r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "in", Partitions: []int32{0}}}
	for range 100_000 {
		resp, err := w.do(r)
		if err != nil {
			return 0, err
		}
		f := resp.(*kmsg.OffsetFetchResponse)
		if f.ErrorCode == kerr.CoordinatorLoadInProgress.Code {
			continue
		}
		if f.ErrorCode != 0 {
			return 0, kerr.ErrorForCode(f.ErrorCode)
		}
		return f.Topics[0].Partitions[0].Offset, nil
	}
	return 0, fmt.Errorf("the coordinator of %s never loaded", c.group)
}

func dialNode(t *testing.T, n *brokertest.Node) *wire {
	t.Helper()
	conn, err := n.Dial(context.Background(), "tcp", n.Seeds()[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &wire{conn: conn}
}

// TestPowerCutsKeepCommits: the power goes while eight groups commit. Every commit
// that was acknowledged is there afterwards, and nothing that was not sent.
func TestPowerCutsKeepCommits(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := brokertest.StartNode(t)
		createTopic(t, client(t, n), "in", 1)
		var committers []*committer
		var wg sync.WaitGroup
		var total atomic.Int64
		enough := int64(50 + r.IntN(500))
		cut := make(chan struct{})
		var once sync.Once
		for i := range 8 {
			c := &committer{w: dialNode(t, n), group: fmt.Sprintf("g%d", i)}
			committers = append(committers, c)
			wg.Go(func() {
				for {
					if _, err := c.commit(); err != nil {
						return // the power is cut
					}
					if total.Add(1) >= enough {
						once.Do(func() { close(cut) })
					}
				}
			})
		}
		<-cut
		n.Crash(t, seed)
		wg.Wait()
		w := dialNode(t, n)
		for _, c := range committers {
			got, err := c.fetch(w)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if acked, sent := c.acked.Load(), c.sent.Load(); max(got, 0) < acked || got > sent {
				t.Errorf("seed %d: group %s has offset %d; %d was acknowledged, %d sent", seed, c.group, got, acked, sent)
			}
		}
	}
}

// TestDiskFailsCommit: while the disk takes nothing, commits get an error that
// clients retry and change nothing; then they go on.
func TestDiskFailsCommit(t *testing.T) {
	for _, kind := range []string{"write", "sync"} {
		t.Run(kind, func(t *testing.T) {
			n := brokertest.StartNode(t)
			createTopic(t, client(t, n), "in", 1)
			c := &committer{w: dialNode(t, n), group: "g"}
			for c.acked.Load() == 0 { // COORDINATOR_LOAD_IN_PROGRESS at first
				if _, err := c.commit(); err != nil {
					t.Fatal(err)
				}
			}
			before := c.acked.Load()
			heal := n.FailDisk(kind, "__consumer_offsets")
			code, err := c.commit()
			if err != nil || code == 0 || !kerr.IsRetriable(kerr.ErrorForCode(code)) {
				t.Fatalf("commit on a failing disk: %v, %v", kerr.ErrorForCode(code), err)
			}
			failed := c.sent.Load()
			heal()
			n.Crash(t, 1) // a broker whose sync failed can not know what the disk has; only a new one can
			w := dialNode(t, n)
			got, err := c.fetch(w)
			if err != nil {
				t.Fatal(err)
			}
			if got != before && (kind == "write" || got != failed) {
				t.Errorf("offset %d after the failure, %d was acknowledged", got, before)
			}
			c.w = w
			if code, err := c.commit(); err != nil || code != 0 {
				t.Fatalf("commit after the disk is well: %v, %v", kerr.ErrorForCode(code), err)
			}
			if got, err := c.fetch(w); err != nil || got != c.acked.Load() {
				t.Errorf("offset %d, %v, want %d", got, err, c.acked.Load())
			}
		})
	}
}
