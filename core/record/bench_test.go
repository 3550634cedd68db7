package record_test

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/core/record"
)

// benchBatch reports records per second of f over a batch of records of 100 bytes.
func benchBatch(b *testing.B, codec record.Codec, f func(record.Batch)) {
	const n = 1000
	batch := batchOf(b, codec, n, 100)
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		f(batch)
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkValidate(b *testing.B) {
	for _, c := range codecs {
		b.Run(c.String(), func(b *testing.B) {
			var s record.Scratch
			benchBatch(b, c, func(batch record.Batch) {
				if _, err := batch.Validate(record.Rules{MaxBytes: 1 << 20, NowMs: 1_700_000_000_000, AfterMaxMs: 3600_000}, &s); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

func BenchmarkReader(b *testing.B) {
	for _, c := range codecs {
		b.Run(c.String(), func(b *testing.B) {
			var s record.Scratch
			benchBatch(b, c, func(batch record.Batch) {
				r, err := batch.Reader(&s)
				if err != nil {
					b.Fatal(err)
				}
				for r.Next() {
				}
				if r.Err() != nil {
					b.Fatal(r.Err())
				}
			})
		})
	}
}

func BenchmarkBuilder(b *testing.B) {
	const n = 1000
	key, value := []byte("key-000001"), make([]byte, 100)
	for _, c := range codecs {
		b.Run(c.String(), func(b *testing.B) {
			var w record.Builder
			b.ReportAllocs()
			for b.Loop() {
				w.Reset(record.BuilderOptions{Codec: c})
				for i := range n {
					w.Append(int64(i), key, value, nil)
				}
				if _, err := w.Batch(); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(w.Size()))
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func BenchmarkCheckCRC(b *testing.B) {
	for _, size := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			batch := batchOf(b, record.None, 1, size)
			b.SetBytes(int64(len(batch)))
			for b.Loop() {
				if err := batch.CheckCRC(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
