package record_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/record"
)

var codecs = []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd}

// batchOf builds n records of about size bytes each.
func batchOf(t testing.TB, codec record.Codec, n, size int) record.Batch {
	t.Helper()
	var w record.Builder
	w.Reset(record.BuilderOptions{Codec: codec})
	value := []byte(strings.Repeat("The mill race turns. ", size/21+1))[:size]
	for i := range n {
		key := fmt.Appendf(nil, "key-%06d", i)
		w.Append(1_700_000_000_000+int64(i), key, value, nil)
	}
	b, err := w.Batch()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func code(err error) int16 {
	var e *record.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func TestValidateGood(t *testing.T) {
	t.Parallel()
	for _, c := range codecs {
		b := batchOf(t, c, 100, 50)
		info, err := b.Validate(record.Rules{MaxBytes: len(b), CompactedTopic: true}, nil)
		if err != nil {
			t.Fatalf("%v: %v", c, err)
		}
		if info.Count != 100 || info.MaxTimestamp != 1_700_000_000_099 || info.MaxTimestampDelta != 99 || info.Untrue {
			t.Errorf("%v: %+v", c, info)
		}
		if _, err := b.Validate(record.Rules{MaxBytes: len(b) - 1}, nil); code(err) != record.CodeMessageTooLarge {
			t.Errorf("%v: a batch one byte too large gives %v", c, err)
		}
	}
}

// TestValidateEveryFlip flips each bit of a batch. The checksum must find it, or the length, or the format; only base offset
// and leader epoch are outside, and the base offset must be 0.
func TestValidateEveryFlip(t *testing.T) {
	t.Parallel()
	b := batchOf(t, record.None, 2, 10)
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		_, err := b.Validate(record.Rules{}, nil)
		if inEpoch := i/8 >= 12 && i/8 < 16; (err == nil) != inEpoch {
			t.Errorf("bit %d of byte %d flipped: %v", i%8, i/8, err)
		}
		b[i/8] ^= 1 << (i % 8)
	}
}

func TestValidateTimestamps(t *testing.T) {
	t.Parallel()
	build := func(ts ...int64) record.Batch {
		var w record.Builder
		w.Reset(record.BuilderOptions{})
		for _, v := range ts {
			w.Append(v, nil, nil, nil)
		}
		b, err := w.Batch()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	limits := record.Rules{NowMs: 1000, BeforeMaxMs: 100, AfterMaxMs: 10}
	for _, c := range []struct {
		what string
		b    record.Batch
		r    record.Rules
		bad  []int32
	}{
		{"within", build(900, 1010, 1000), limits, nil},
		{"too old, too new", build(899, 1000, 1011), limits, []int32{0, 2}},
		{"without a time", build(-1, 1000), limits, nil},
		{"extremes without limits", build(-1, 0, math.MaxInt64-1), record.Rules{}, nil},
		{"extremes with Kafka's unlimited", build(0, math.MaxInt64), record.Rules{NowMs: 1000, BeforeMaxMs: math.MaxInt64, AfterMaxMs: math.MaxInt64}, nil},
		{"a delta that overflows", overflowing(build(5)), record.Rules{}, []int32{0}},
		{"the broker's time replaces it", overflowing(build(5)), record.Rules{LogAppendTime: true}, nil},
	} {
		_, err := c.b.Validate(c.r, nil)
		if (err != nil) != (c.bad != nil) {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if c.bad == nil {
			continue
		}
		var e *record.Error
		if !errors.As(err, &e) || e.Code != record.CodeInvalidTimestamp || e.Failed != len(c.bad) || len(e.Records) != len(c.bad) {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		for i, r := range e.Records {
			if r.Index != c.bad[i] || r.Message == "" {
				t.Errorf("%s: %+v", c.what, r)
			}
		}
	}
}

// overflowing gives the one record of b a base timestamp that its delta of 1 overflows from.
func overflowing(b record.Batch) record.Batch {
	binary.BigEndian.PutUint64(b[27:], math.MaxInt64)
	b[record.HeaderSize+2] = 2 // the timestamp delta, zigzag
	b.SetCRC()
	return b
}

func TestValidateBoundsRecordErrors(t *testing.T) {
	t.Parallel()
	var w record.Builder
	for range 1000 {
		w.Append(1, nil, []byte("v"), nil)
	}
	b, err := w.Batch()
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Validate(record.Rules{CompactedTopic: true}, nil)
	var e *record.Error
	if !errors.As(err, &e) || e.Code != record.CodeInvalidRecord || e.Failed != 1000 || len(e.Records) != record.MaxRecordErrors {
		t.Fatalf("%v", err)
	}
}

// TestDecompressionIsBounded sends a batch that packs 8 MiB into some kilobytes and allows it 1 MiB.
func TestDecompressionIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range codecs[1:] {
		b := batchOf(t, c, 8, 1<<20)
		var s record.Scratch
		if _, err := b.Validate(record.Rules{MaxDecompressed: 1 << 20}, &s); code(err) != record.CodeMessageTooLarge || !errors.Is(err, record.ErrTooLarge) {
			t.Errorf("%v: validated with %v", c, err)
		}
		s.MaxDecompressed = 1 << 20
		if _, err := b.Reader(&s); !errors.Is(err, record.ErrTooLarge) {
			t.Errorf("%v: read with %v", c, err)
		}
		s.MaxDecompressed = 0
		if _, err := b.Validate(record.Rules{}, &s); err != nil {
			t.Errorf("%v: the default limit refuses %v", c, err)
		}
	}
}

// TestCutPayload cuts compressed records short at every length: never a panic, never a batch that passes.
func TestCutPayload(t *testing.T) {
	t.Parallel()
	for _, c := range codecs {
		whole := batchOf(t, c, 20, 30)
		for n := record.HeaderSize; n < len(whole); n++ {
			b := append(record.Batch(nil), whole[:n]...)
			binary.BigEndian.PutUint32(b[8:], uint32(n-12))
			b.SetCRC()
			// The end mark or checksum of a frame may be cut off behind the last record.
			if _, err := b.Validate(record.Rules{}, nil); err == nil {
				t.Errorf("%v: %d of %d bytes pass", c, n, len(whole))
			} else if code(err) != record.CodeInvalidRecord && code(err) != record.CodeMessageTooLarge {
				t.Errorf("%v: %d of %d bytes: %v", c, n, len(whole), err)
			}
		}
	}
}

// TestAbsurdClaims lets header and records claim far more than there is.
func TestAbsurdClaims(t *testing.T) {
	t.Parallel()
	b := batchOf(t, record.None, 1, 10)
	binary.BigEndian.PutUint32(b[23:], math.MaxInt32-1)
	binary.BigEndian.PutUint32(b[57:], math.MaxInt32)
	b.SetCRC()
	if _, err := b.Validate(record.Rules{}, nil); code(err) != record.CodeInvalidRecord {
		t.Errorf("2^31-1 records in %d bytes: %v", len(b), err)
	}
	n := 0
	for _, err := range b.Records(nil) {
		if err == nil {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d records came out, 1 is there", n)
	}
	// A snappy block that claims 1 GiB.
	huge := append(batchOf(t, record.Snappy, 1, 10)[:record.HeaderSize:record.HeaderSize], 0x80, 0x80, 0x80, 0x80, 0x04, 0)
	binary.BigEndian.PutUint32(huge[8:], uint32(len(huge)-12))
	huge.SetCRC()
	if _, err := huge.Validate(record.Rules{MaxDecompressed: math.MaxInt32}, nil); code(err) != record.CodeInvalidRecord {
		t.Errorf("a snappy block that claims 1 GiB: %v", err)
	}
}
