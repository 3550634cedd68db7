package coordinator

import (
	"fmt"
	"testing"
	"time"
)

// sweep ticks until nothing is due and counts the outputs.
func (h *harness) sweep() (ticks int) {
	h.t.Helper()
	for {
		ms, ok := h.m.NextDeadline()
		if !ok || ms > h.nowMs {
			return ticks
		}
		if ticks++; ticks > 10_000 {
			h.t.Fatalf("a deadline at %d stays due at %d", ms, h.nowMs)
		}
		h.apply(h.m.Tick(h.nowMs))
	}
}

func (h *harness) init(id string) InitReply {
	h.t.Helper()
	to := h.do(func(to Token) Output {
		return h.m.InitProducerID(h.nowMs, to, InitRequest{ID: id, ProducerID: none, Epoch: none, TimeoutMs: 60000, Version: 5})
	})
	return h.replies[to].(InitReply)
}

// Only ids at rest expire, after their last change, in sweeps; they may come back, with another producer id, and the old one
// is refused (KAFKA-14880 for ids with epoch -1).
func TestExpiry(t *testing.T) {
	h := newHarness(t)
	day := 24 * time.Hour.Milliseconds()
	idle := h.init("idle")
	open := h.init("open")
	add := func(id string, r InitReply) []int16 {
		to := h.do(func(to Token) Output {
			return h.m.AddPartitions(h.nowMs, to, AddRequest{ID: id, ProducerID: r.ProducerID, Epoch: r.Epoch, Version: 3,
				Partitions: []TopicPartition{{"t", 0}}})
		})
		return h.replies[to].(AddReply).Codes
	}
	add("open", open)
	vote := h.init("vote")
	add("vote", vote)
	h.do(func(to Token) Output {
		return h.m.InitProducerID(h.nowMs, to, InitRequest{ID: "vote", ProducerID: none, Epoch: none, TimeoutMs: 1000, Version: 6,
			Enable2PC: true, KeepPrepared: true})
	})
	// An old Kafka left ids with epoch -1 (KAFKA-14880); it has no other trace of a producer.
	unborn := metadata{producerID: 9, previousID: 9, nextID: none, nextEpoch: none, epoch: none, lastEpoch: none, timeoutMs: 1000, startMs: none, updateMs: 1000}
	for _, m := range []*Machine{h.m, h.shadow} {
		r := logged("unborn", unborn)
		if err := m.Replay(r.Key, r.Value); err != nil {
			t.Fatal(err)
		}
	}
	h.nowMs += 6 * day
	h.init("used") // after six days the timeout of "open" is due too
	h.sweep()
	if h.m.get("open").state != PrepareAbort || h.m.get("vote").state != Kept || h.m.get("idle") == nil {
		t.Fatalf("after six days:\n%s", h.m.Dump())
	}
	h.nowMs += day + time.Hour.Milliseconds()
	h.failNext = true
	h.apply(h.m.Tick(h.nowMs))
	if h.m.get("idle") == nil {
		t.Fatal("an id was forgotten whose tombstone is not in the log")
	}
	h.sweep()
	h.check()
	if h.m.get("idle") != nil || h.m.get("unborn") != nil {
		t.Fatalf("after seven days:\n%s", h.m.Dump())
	}
	if h.m.get("open") == nil || h.m.get("vote") == nil || h.m.get("used") == nil {
		t.Fatalf("ids that are not at rest, or were used, are gone:\n%s", h.m.Dump())
	}
	if c := add("idle", idle); c[0] != CodeInvalidProducerIDMap {
		t.Errorf("the producer of an expired id is told %s", code(c[0]))
	}
	if r := h.init("idle"); r.Code != CodeNone || r.Epoch != 0 || r.ProducerID == idle.ProducerID {
		t.Errorf("an expired id comes back as %+v, it had producer id %d", r, idle.ProducerID)
	}
	h.carryOut() // "open" is complete: its week begins now
	h.nowMs += 8 * day
	h.sweep()
	if n := len(h.m.ids); n != 1 || h.m.get("vote") == nil {
		t.Errorf("%d ids are left, want the one that voted:\n%s", n, h.m.Dump())
	}
}

// A hundred thousand ids expire in few batches, each small enough for one (KAFKA-13099, case T16).
func TestExpiryOfMany(t *testing.T) {
	h := newHarness(t)
	const ids = 100_000
	for i := range ids {
		md := metadata{producerID: int64(i), previousID: int64(i), nextID: none, nextEpoch: none, lastEpoch: none, timeoutMs: 1000,
			startMs: none, updateMs: h.nowMs + int64(i)*30}
		r := logged(fmt.Sprintf("an-application-of-some-team-%d", i), md)
		if err := h.m.Replay(r.Key, r.Value); err != nil {
			t.Fatal(err)
		}
	}
	h.nowMs += 8 * 24 * time.Hour.Milliseconds()
	batches, forgotten := 0, 0
	for {
		if _, ok := h.m.NextDeadline(); !ok {
			break
		}
		out := h.m.Tick(h.nowMs)
		if out.Records == nil {
			t.Fatalf("nothing is done, %d ids are left", len(h.m.ids))
		}
		size := 0
		for _, r := range out.Records {
			size += len(r.Key) + 31
			if err := h.m.Replay(r.Key, r.Value); err != nil {
				t.Fatal(err)
			}
		}
		if size > 900_000 {
			t.Fatalf("%d tombstones take %d bytes, a batch has 1 MB", len(out.Records), size)
		}
		batches++
		forgotten += len(out.Records)
	}
	if forgotten != ids || len(h.m.ids) != 0 || batches > ids/1000 {
		t.Fatalf("%d of %d ids forgotten in %d batches, %d left", forgotten, ids, batches, len(h.m.ids))
	}
}

// Ids of one hour are forgotten together.
func TestSweepsAreApart(t *testing.T) {
	h := newHarness(t)
	for i := range 100 {
		h.nowMs = 10_000 + int64(i)*30_000 // within the first hour of the epoch
		h.init(fmt.Sprint(i))
	}
	h.nowMs += 8 * 24 * time.Hour.Milliseconds()
	if n := h.sweep(); n != 1 {
		t.Errorf("ids of one hour were forgotten in %d batches", n)
	}
}
