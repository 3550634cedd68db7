package producer_test

import (
	"testing"

	"github.com/millrace/millrace/txn/producer"
)

// BenchmarkCheckApply is what a partition pays per batch, among 10,000 producers that all have a transaction open.
func BenchmarkCheckApply(b *testing.B) {
	const producers = 10_000
	var table producer.Table
	next := int64(0)
	batch := func(id int64, seq int32) producer.Batch {
		next++
		return producer.Batch{ProducerID: id, BaseSequence: seq, LastSequence: seq, BaseOffset: next, LastOffset: next, TimestampMs: 1, SeenMs: 1, Transactional: true}
	}
	for id := range int64(producers) {
		table.Apply(batch(id, 0))
	}
	b.ReportAllocs()
	id, seq := int64(0), int32(1)
	for b.Loop() {
		data := batch(id, seq)
		if _, dup, err := table.Check(data); dup || err != nil {
			b.Fatal(dup, err)
		}
		table.Apply(data)
		if _, ok := table.FirstOpen(); !ok {
			b.Fatal("nothing is open")
		}
		if id++; id == producers {
			id, seq = 0, seq+1
		}
	}
}

// BenchmarkMarker opens and ends a transaction among 10,000 that stay open.
func BenchmarkMarker(b *testing.B) {
	var table producer.Table
	for id := range int64(10_000) {
		table.Apply(producer.Batch{ProducerID: id, BaseOffset: id, LastOffset: id, Transactional: true})
	}
	b.ReportAllocs()
	at := int64(10_000)
	for b.Loop() {
		table.Apply(producer.Batch{ProducerID: 10_000, BaseOffset: at, LastOffset: at, Transactional: true})
		if _, had := table.ApplyMarker(producer.Marker{ProducerID: 10_000}, at+1, 1); !had {
			b.Fatal("nothing was open")
		}
		at += 2
	}
}

func BenchmarkSnapshot(b *testing.B) {
	var table producer.Table
	for i := range int64(50_000) {
		table.Apply(producer.Batch{ProducerID: i % 10_000, BaseSequence: int32(i / 10_000), LastSequence: int32(i / 10_000), BaseOffset: i, LastOffset: i})
	}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = table.Snapshot(buf[:0])
	}
	b.SetBytes(int64(len(buf)))
}
