package coord

import (
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/coordinator"
)

// appendOnly appends a batch to the client's open transaction and waits for nothing, as a producer with acks=1.
func (c *client) appendOnly(i int32, value string) {
	c.n.t.Helper()
	var b record.Builder
	b.Reset(record.BuilderOptions{Producer: &record.Producer{ID: c.pid, Epoch: c.epoch, Sequence: c.seq[i]}, Transactional: true})
	b.Append(c.n.clock.Now().UnixMilli(), []byte("k"), []byte(value), nil)
	batch, err := b.Batch()
	if err == nil {
		_, err = c.n.part("t", i).Append(batch, partition.AppendOptions{RequestVersion: 12})
	}
	if err != nil {
		c.n.t.Fatal(err)
	}
	c.seq[i]++
}

// TestCommitWaitsForItsRecords: a commit is not decided before all that its producer wrote is synced, whatever was acknowledged; an
// abort is.
func TestCommitWaitsForItsRecords(t *testing.T) {
	for _, version := range []int16{5, 4} {
		faults := vfs.WithFaults(vfs.NewMem())
		n := newNode(t, faults, clock.System(), new(atomic.Int64))
		c := n.client("x", version).init()
		if version < 5 {
			c.add(TopicPartition{Topic: "t", Partition: 0})
		}
		if code := c.produce(0, "first"); code != 0 {
			t.Fatalf("code %d", code)
		}
		hold := make(chan struct{})
		var once sync.Once
		arrived := make(chan struct{})
		faults.OnOp(func(op vfs.Op) {
			if op.Kind == vfs.OpSync && strings.Contains(op.Path, "t-0") {
				once.Do(func() { close(arrived) })
				<-hold
			}
		})
		c.appendOnly(0, strings.Repeat("x", 100_000)) // too large for an append journal
		<-arrived
		answer := make(chan coordinator.EndReply, 1)
		n.txns.End(coordinator.EndRequest{ID: "x", ProducerID: c.pid, Epoch: c.epoch, Commit: true, Version: version},
			func(r coordinator.EndReply) { answer <- r })
		if state := n.dump("x"); !strings.Contains(state, "Ongoing") || len(answer) > 0 {
			t.Fatalf("version %d: a record is not durable, and the state is %s", version, state)
		}
		close(hold)
		if r := <-answer; r.Code != 0 {
			t.Fatalf("version %d: %+v", version, r)
		} else {
			c.ended(r)
		}
		n.atRest()
		n.close()
	}
}

// TestCommitOfWhatIsLost: when a sync fails that a commit waits for, the client is told to abort, and can.
func TestCommitOfWhatIsLost(t *testing.T) {
	for version, want := range map[int16]int16{5: coordinator.CodeTransactionAbortable, 4: coordinator.CodeUnknownProducerID} {
		faults := vfs.WithFaults(vfs.NewMem())
		n := newNode(t, faults, clock.System(), new(atomic.Int64))
		c := n.client("x", version).init()
		if version < 5 {
			c.add(TopicPartition{Topic: "t", Partition: 0})
		}
		if code := c.produce(0, "first"); code != 0 {
			t.Fatalf("code %d", code)
		}
		remove := faults.Add(vfs.Rule{Kinds: vfs.OpSync, Path: "*.log", Nth: 1, Err: syscall.EIO})
		c.appendOnly(0, strings.Repeat("x", 100_000))
		if r := c.end(true); r.Code != want {
			t.Fatalf("version %d: %+v, want code %d", version, r, want)
		}
		remove()
		if state := n.dump("x"); !strings.Contains(state, "Ongoing") {
			t.Fatalf("version %d: %s", version, state)
		}
		if r := c.end(false); r.Code != 0 {
			t.Fatalf("version %d: abort: %+v", version, r)
		}
		if state := n.dump("x"); !strings.Contains(state, "PrepareAbort") { // the marker waits for the partition
			t.Fatalf("version %d: %s", version, state)
		}
		n.txns.Close()
		n.groups.Close()
		for name, p := range n.parts {
			if err := p.Close(); (err != nil) != (name == "t-0") {
				t.Errorf("close %s: %v", name, err)
			}
		}
		if err := n.flusher.Close(); err != nil {
			t.Error(err)
		}
	}
}
