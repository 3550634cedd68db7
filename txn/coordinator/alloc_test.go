package coordinator

import (
	"testing"
)

// TestAllocationsPerTransaction: what the coordinator's machine allocates for one transaction of version 2 does not grow with the ids
// it knows, nor with the transactions that there were.
func TestAllocationsPerTransaction(t *testing.T) {
	pid := int64(0)
	perTransaction := func(ids int) float64 {
		m, err := New(Options{ProducerIDs: func() (int64, error) { pid++; return pid, nil }})
		if err != nil {
			t.Fatal(err)
		}
		apply := func(out Output) Output {
			for _, r := range out.Records {
				if err := m.Replay(r.Key, r.Value); err != nil {
					t.Fatal(err)
				}
			}
			return out
		}
		var r InitReply
		for i := range ids {
			id := string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
			r = apply(m.InitProducerID(1, 1, InitRequest{ID: id, ProducerID: -1, Epoch: -1, TimeoutMs: 60_000, Version: 5})).Replies[0].Response.(InitReply)
		}
		id := m.sorted()[len(m.ids)-1]
		r = InitReply{ProducerID: m.ids[id].producerID, Epoch: m.ids[id].epoch}
		epoch, now := r.Epoch, int64(2)
		parts := []TopicPartition{{Topic: "t", Partition: 3}}
		return testing.AllocsPerRun(200, func() {
			now++
			add := apply(m.AddPartitions(now, 1, AddRequest{ID: id, ProducerID: r.ProducerID, Epoch: epoch, Partitions: parts, Implicit: true, Version: 5}))
			if code := add.Replies[0].Response.(AddReply).Codes[0]; code != 0 {
				t.Fatalf("add: code %d", code)
			}
			if len(m.MustBeDurable(EndRequest{ID: id, ProducerID: r.ProducerID, Epoch: epoch, Commit: true, Version: 5})) != 1 {
				t.Fatal("the commit knows no partition")
			}
			end := apply(m.EndTxn(now, 1, EndRequest{ID: id, ProducerID: r.ProducerID, Epoch: epoch, Commit: true, Version: 5}))
			apply(m.Completed(now, end.Decisions[0]))
			epoch++
		})
	}
	few, many := perTransaction(1), perTransaction(2000)
	if few > 60 || many > few+2 {
		t.Errorf("%.0f allocations for a transaction, %.0f beside 2,000 other ids; want at most 60, and the same", few, many)
	}
	t.Logf("%.0f and %.0f", few, many)
}
