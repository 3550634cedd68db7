package record_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"github.com/millrace/millrace/core/record"
)

// seedBatches adds every batch that Kafka wrote into the test data.
func seedBatches(f *testing.F) {
	f.Helper()
	for _, dir := range goldenPartitions(f) {
		for _, log := range segments(f, dir) {
			buf, err := os.ReadFile(log)
			if err != nil {
				f.Fatal(err)
			}
			for b, err := range record.Batches(buf) {
				if err != nil {
					f.Fatal(err)
				}
				f.Add([]byte(b))
			}
		}
	}
	for _, c := range codecs {
		f.Add([]byte(batchOf(f, c, 3, 20)))
	}
}

// FuzzNext splits any bytes: what comes out is a part of them, in order, and of the size that PeekSize says.
func FuzzNext(f *testing.F) {
	seedBatches(f)
	f.Fuzz(func(t *testing.T, buf []byte) {
		rest := buf
		for len(rest) > 0 {
			b, after, err := record.Next(rest)
			if err != nil {
				if b != nil || !bytes.Equal(after, rest) {
					t.Fatal("an error moved on")
				}
				break
			}
			n, err := record.PeekSize(rest)
			if err != nil || n != len(b) || len(b)+len(after) != len(rest) || !bytes.Equal(b, rest[:n]) || n < record.HeaderSize {
				t.Fatalf("size %d, batch of %d, %d behind it, of %d, %v", n, len(b), len(after), len(rest), err)
			}
			rest = after
		}
		if b, err := record.Single(buf); err == nil {
			first, _, err := record.Next(buf)
			if err != nil || !bytes.Equal(first, b) {
				t.Fatalf("Single takes what Next does not: %v", err)
			}
		}
	})
}

// asBatch makes a batch with a fitting length and checksum of any bytes, so that the fuzzer gets behind both.
func asBatch(buf []byte) record.Batch {
	b := make(record.Batch, max(len(buf), record.HeaderSize))
	copy(b, buf)
	binary.BigEndian.PutUint64(b, 0)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	b[16] = 2
	b.SetCRC()
	return b
}

const fuzzLimit = 1 << 20

// FuzzValidate: what Validate lets pass, the reader reads to the end, and with the same numbers.
func FuzzValidate(f *testing.F) {
	seedBatches(f)
	f.Fuzz(func(t *testing.T, buf []byte) {
		b := asBatch(buf)
		info, err := b.Validate(record.Rules{MaxDecompressed: fuzzLimit, AllowControl: true}, nil)
		if err != nil {
			if code(err) == 0 {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		b.Settle(info)
		if err := b.CheckCRC(); err != nil {
			t.Fatal(err)
		}
		n, latest := int32(0), int64(record.NoTimestamp)
		for r, err := range b.Records(nil) {
			if err != nil {
				t.Fatalf("record %d of a valid batch: %v", n, err)
			}
			if r.Offset != int64(n) {
				t.Fatalf("record %d has offset %d", n, r.Offset)
			}
			n++
			latest = max(latest, r.Timestamp)
		}
		if n != info.Count || n != b.Count() || latest != b.MaxTimestamp() {
			t.Fatalf("%d records up to time %d, Validate said %+v", n, latest, info)
		}
	})
}

// FuzzReader reads any payload under any header, and builds what it read again.
func FuzzReader(f *testing.F) {
	seedBatches(f)
	f.Fuzz(func(t *testing.T, buf []byte) {
		b := asBatch(buf)
		scratch := record.Scratch{MaxDecompressed: fuzzLimit}
		r, err := b.Reader(&scratch)
		if err != nil {
			return
		}
		var w record.Builder
		n := 0
		for ; r.Next(); n++ {
			rec := r.Record()
			w.Append(rec.Timestamp, rec.Key, rec.Value, rec.Headers)
		}
		if r.Err() == nil && n != int(b.Count()) {
			t.Fatalf("%d records of %d without an error", n, b.Count())
		}
		if n == 0 {
			return
		}
		again, err := w.Batch()
		if err != nil {
			t.Fatal(err)
		}
		m := 0
		for _, err := range again.Records(nil) {
			if err != nil {
				t.Fatal(err)
			}
			m++
		}
		if m != n {
			t.Fatalf("%d records built, %d read again", n, m)
		}
		if _, _, err := b.Marker(); err != nil && !b.Attributes().Control() {
			t.Fatalf("data as a marker: %v", err)
		}
	})
}
