package runner

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/core/seedtest"
)

// randomBatch makes a batch over up to three partitions with gaps and rejects.
func randomBatch(rng *rand.Rand) *connectors.Batch {
	b := &connectors.Batch{}
	next := map[connectors.TP]int64{}
	for range 2 + rng.IntN(20) {
		tp := connectors.TP{Topic: "t", Partition: rng.Int32N(3)}
		off := next[tp] + rng.Int64N(3)
		next[tp] = off + 1
		r := connectors.Record{TP: tp, Offset: off, LeaderEpoch: 1}
		if rng.IntN(4) == 0 {
			b.Rejects = append(b.Rejects, connectors.Reject{Record: r})
		} else {
			b.Records = append(b.Records, r)
		}
	}
	for p := range int32(3) {
		tp := connectors.TP{Topic: "t", Partition: p}
		if next[tp] == 0 {
			continue
		}
		to := connectors.Position{Next: next[tp] + rng.Int64N(2), LeaderEpoch: 1, Seq: 8}
		b.Ranges = append(b.Ranges, connectors.Range{TP: tp, Fence: connectors.Fence{Epoch: 5, Owner: "o"}, From: connectors.Position{Next: 0, Seq: 7}, To: to})
	}
	return b
}

// TestHalve: two halves, delivered one after the other, are the whole: each
// record and reject once and inside its range, ranges joined end to end.
func TestHalve(t *testing.T) {
	t.Parallel()
	seed := seedtest.New(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 2000 {
		b := randomBatch(rng)
		if len(b.Records) < 2 {
			continue
		}
		first, second := halve(b)
		if err := joins(b, first, second); err != nil {
			t.Fatalf("%v\nwhole  %+v\nfirst  %+v\nsecond %+v", err, b, first, second)
		}
	}
}

func joins(whole, first, second *connectors.Batch) error {
	if len(first.Records) == 0 || len(second.Records) == 0 {
		return errors.New("a half has no records")
	}
	if n := len(first.Records) + len(second.Records); n != len(whole.Records) {
		return fmt.Errorf("%d records, want %d", n, len(whole.Records))
	}
	if n := len(first.Rejects) + len(second.Rejects); n != len(whole.Rejects) {
		return fmt.Errorf("%d rejects, want %d", n, len(whole.Rejects))
	}
	at := map[connectors.TP]connectors.Position{}
	for _, r := range whole.Ranges {
		at[r.TP] = r.From
	}
	for _, h := range []*connectors.Batch{first, second} {
		ranges := map[connectors.TP]connectors.Range{}
		for _, r := range h.Ranges {
			if _, twice := ranges[r.TP]; twice || r.From.Next != at[r.TP].Next || r.From.Seq != at[r.TP].Seq || r.To.Seq != r.From.Seq+1 {
				return fmt.Errorf("range %+v does not begin at %+v", r, at[r.TP])
			}
			ranges[r.TP], at[r.TP] = r, r.To
		}
		inside := func(r connectors.Record) error {
			if g, ok := ranges[r.TP]; !ok || r.Offset < g.From.Next || r.Offset >= g.To.Next {
				return fmt.Errorf("record %s offset %d is outside its range %+v", r.TP, r.Offset, g)
			}
			return nil
		}
		for _, r := range h.Records {
			if err := inside(r); err != nil {
				return err
			}
		}
		for _, r := range h.Rejects {
			if err := inside(r.Record); err != nil {
				return err
			}
		}
	}
	for _, r := range whole.Ranges {
		if at[r.TP].Next != r.To.Next {
			return fmt.Errorf("%s ends at %d, want %d", r.TP, at[r.TP].Next, r.To.Next)
		}
	}
	return nil
}

func TestWithoutKeepsOrderAndNamesRejects(t *testing.T) {
	t.Parallel()
	b := &connectors.Batch{Records: []connectors.Record{{Offset: 0}, {Offset: 1}, {Offset: 2}, {Offset: 3}}}
	out := without(b, []*connectors.RejectError{{Index: 3, Reason: "r3", Err: errors.New("e3")}, {Index: 1, Reason: "r1", Err: errors.New("e1")}})
	if len(out.Records) != 2 || out.Records[0].Offset != 0 || out.Records[1].Offset != 2 {
		t.Errorf("records %+v", out.Records)
	}
	if len(out.Rejects) != 2 || out.Rejects[0].Record.Offset != 1 || out.Rejects[0].Reason != "r1" || out.Rejects[1].Err != "e3" {
		t.Errorf("rejects %+v", out.Rejects)
	}
	if len(b.Records) != 4 || len(b.Rejects) != 0 {
		t.Error("the batch that was handed out before has changed")
	}
}
