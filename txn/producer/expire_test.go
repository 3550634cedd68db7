package producer

import (
	"os"
	"runtime"
	"testing"
)

// Hundreds of thousands of short-lived producers pass through one partition: what is remembered is those of the last seconds, and the memory
// for it stays the same. MILLRACE_SOAK makes it ten million.
func TestManyShortLivedProducers(t *testing.T) {
	const perMs, afterMs, sweepMs = 10, 6_000, 1_000
	producers := int64(300_000)
	switch {
	case os.Getenv("MILLRACE_SOAK") != "":
		producers = 10_000_000
	case testing.Short():
		producers /= 3
	}
	const most = (afterMs + sweepMs + 1) * perMs
	var table Table
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	table.Apply(Batch{ProducerID: 1 << 40, Transactional: true, SeenMs: 1}) // a transaction that stays open all the time
	for id := range producers {
		now := id / perMs
		b := Batch{ProducerID: id, BaseOffset: id + 1, LastOffset: id + 1, TimestampMs: now, SeenMs: now, Transactional: id%2 == 0}
		if _, _, err := table.Check(b); err != nil {
			t.Fatal(err)
		}
		table.Apply(b)
		if b.Transactional {
			m := Marker{ProducerID: id, Epoch: 1, TxnVersion: 2}
			if err := table.CheckMarker(m); err != nil {
				t.Fatal(err)
			}
			table.ApplyMarker(m, id+1, now)
		}
		if now%sweepMs == 0 {
			for table.Expire(now, afterMs, 1000) == 1000 {
			}
		}
		if table.Len() > most {
			t.Fatalf("%d producers are remembered at %d ms, want at most %d", table.Len(), now, most)
		}
	}
	if grown, bound := heap()-before, uint64(most*300); grown > bound {
		t.Errorf("%d producers take %d bytes, want at most %d", table.Len(), grown, bound)
	}
	end := producers/perMs + afterMs
	for table.Expire(end, afterMs, 1000) > 0 {
	}
	if _, open := table.Open(1<<40, 0); !open || table.Len() != 1 {
		t.Fatalf("%d producers are left, want the one with an open transaction", table.Len())
	}
	if grown := int64(heap() - before); grown > 1<<20 {
		t.Errorf("an empty table keeps %d bytes", grown)
	}
}

// The limit bounds one call, in the order of the last activity.
func TestExpireLimit(t *testing.T) {
	var table Table
	for id := range int64(10) {
		table.Apply(Batch{ProducerID: id, BaseOffset: id, LastOffset: id, SeenMs: 100 + id})
	}
	table.Apply(Batch{ProducerID: 0, BaseSequence: 1, LastSequence: 1, BaseOffset: 10, LastOffset: 10, SeenMs: 200})
	var loaded Table
	if err := loaded.Load(table.Snapshot(nil)); err != nil {
		t.Fatal(err)
	}
	for name, tb := range map[string]*Table{"live": &table, "loaded": &loaded} {
		if n := tb.Expire(1000, 895, 3); n != 3 {
			t.Errorf("%s: %d forgotten, the limit is 3", name, n)
		}
		if tb.get(0) == nil || tb.get(3) != nil || tb.get(4) == nil {
			t.Errorf("%s: not the quietest were forgotten", name)
		}
		if n := tb.Expire(1000, 895, 30); n != 2 || tb.get(6) == nil {
			t.Errorf("%s: %d more are forgotten, want 2: those seen until 105", name, n)
		}
	}
}
