package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/klauspost/compress/snappy"

	"github.com/millrace/millrace/core/record"
)

// randomRecord is a record of any shape: null, empty and long fields, times that go back and forth.
func randomRecord(rng *rand.Rand) record.Record {
	field := func() []byte {
		switch rng.IntN(4) {
		case 0:
			return nil
		case 1:
			return []byte{}
		}
		p := make([]byte, rng.IntN(300))
		for i := range p {
			p[i] = byte(rng.UintN(8))
		}
		return p
	}
	r := record.Record{Timestamp: rng.Int64N(1 << 50), Key: field(), Value: field()}
	for range rng.IntN(4) {
		r.Headers = append(r.Headers, record.Header{Key: append([]byte{}, field()...), Value: field()})
	}
	return r
}

func TestBuildReadRoundTrip(t *testing.T) {
	t.Parallel()
	const seed = 20261129
	rng := rand.New(rand.NewPCG(seed, 1))
	var w record.Builder
	var scratch record.Scratch
	rounds := 120
	if raceEnabled {
		rounds = 30 // the pools of encoders drop at random then, and making one is slow
	}
	for round := range rounds {
		o := record.BuilderOptions{Codec: codecs[rng.IntN(len(codecs))], BaseOffset: rng.Int64N(1 << 40), LeaderEpoch: rng.Int32()}
		if rng.IntN(2) == 0 {
			o.Producer = &record.Producer{ID: rng.Int64N(100), Epoch: int16(rng.IntN(100)), Sequence: rng.Int32()}
			o.Transactional = rng.IntN(2) == 0
		}
		w.Reset(o)
		var want []string
		for i := range 1 + rng.IntN(200) {
			r := randomRecord(rng)
			w.Append(r.Timestamp, r.Key, r.Value, r.Headers)
			r.Offset = o.BaseOffset + int64(i)
			want = append(want, fmt.Sprintf("%#v", r))
		}
		b, err := w.Batch()
		if err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, round, err)
		}
		if _, err := b.Validate(record.Rules{AllowBaseOffset: true}, &scratch); err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, round, err)
		}
		checkOptions(t, b, o, len(want))
		i := 0
		for r, err := range b.Records(&scratch) {
			if err != nil {
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
			if got := fmt.Sprintf("%#v", *r); got != want[i] {
				t.Fatalf("seed %d, round %d, record %d:\n%s, want\n%s", seed, round, i, got, want[i])
			}
			i++
		}
		if i != len(want) {
			t.Fatalf("seed %d, round %d: %d records, want %d", seed, round, i, len(want))
		}
	}
}

func checkOptions(t *testing.T, b record.Batch, o record.BuilderOptions, n int) {
	t.Helper()
	p := record.Producer{ID: -1, Epoch: -1, Sequence: -1}
	if o.Producer != nil {
		p = *o.Producer
	}
	a := b.Attributes()
	if b.BaseOffset() != o.BaseOffset || b.LastOffset() != o.BaseOffset+int64(n)-1 || b.LeaderEpoch() != o.LeaderEpoch || int(b.Count()) != n ||
		b.ProducerID() != p.ID || b.ProducerEpoch() != p.Epoch || b.BaseSequence() != p.Sequence || b.HasProducer() != (p.ID >= 0) ||
		a.Codec() != o.Codec || a.Transactional() != o.Transactional || a.Control() || a.LogAppendTime() {
		t.Fatalf("the header does not say what was asked for: %+v, %x", o, b[:record.HeaderSize])
	}
}

func TestBuilderRefuses(t *testing.T) {
	t.Parallel()
	var w record.Builder
	if _, err := w.Batch(); !errors.Is(err, record.ErrEmpty) {
		t.Errorf("an empty batch: %v", err)
	}
	w.Reset(record.BuilderOptions{Transactional: true})
	w.Append(1, nil, nil, nil)
	if _, err := w.Batch(); err == nil {
		t.Error("a transactional batch without a producer was built")
	}
	w.Reset(record.BuilderOptions{Codec: 6})
	w.Append(1, nil, nil, nil)
	if _, err := w.Batch(); err == nil {
		t.Error("a batch of codec 6 was built")
	}
}

func TestLastSequenceWraps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ base, n, want int32 }{
		{0, 1, 0}, {5, 3, 7}, {math.MaxInt32, 1, math.MaxInt32}, {math.MaxInt32 - 1, 3, 0}, {math.MaxInt32, 2, 0}, {-1, 3, -1},
	} {
		var w record.Builder
		w.Reset(record.BuilderOptions{Producer: &record.Producer{Sequence: c.base}})
		for range c.n {
			w.Append(0, nil, nil, nil)
		}
		b, err := w.Batch()
		if err != nil || b.LastSequence() != c.want {
			t.Errorf("%d records from %d end at %d, want %d, %v", c.n, c.base, b.LastSequence(), c.want, err)
		}
	}
}

// TestRawSnappy reads the other shape of snappy: one raw block, which librdkafka sends.
func TestRawSnappy(t *testing.T) {
	t.Parallel()
	framed := batchOf(t, record.Snappy, 50, 40)
	plain := batchOf(t, record.None, 50, 40)
	raw := append(framed[:record.HeaderSize:record.HeaderSize], snappy.Encode(nil, plain[record.HeaderSize:])...)
	raw[10], raw[11] = byte((len(raw)-12)>>8), byte(len(raw)-12)
	raw.SetCRC()
	if _, err := raw.Validate(record.Rules{}, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := allRecords(t, raw), allRecords(t, plain); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %q", got)
	}
}

func TestMarkers(t *testing.T) {
	t.Parallel()
	for _, m := range []record.Marker{
		{ProducerID: 5, ProducerEpoch: 1, Commit: true, CoordinatorEpoch: 3, TimestampMs: 1_700_000_000_000},
		{ProducerID: math.MaxInt64, ProducerEpoch: math.MaxInt16, CoordinatorEpoch: math.MaxInt32},
	} {
		prefix := []byte("before")
		b := record.BuildControl(prefix, m)
		if !bytes.Equal(prefix, []byte("before")) {
			t.Fatal("what stands before was changed")
		}
		got, ok, err := b.Marker()
		if err != nil || !ok || got != m {
			t.Fatalf("%+v, %v, %v, want %+v", got, ok, err, m)
		}
		if _, err := b.Validate(record.Rules{AllowControl: true}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Validate(record.Rules{}, nil); code(err) != record.CodeInvalidRecord {
			t.Fatalf("a client's control batch: %v", err)
		}
	}
	if _, ok, err := batchOf(t, record.None, 1, 1).Marker(); ok || err != nil {
		t.Fatalf("data is a marker: %v, %v", ok, err)
	}
}

// TestConcurrentCodecs has many goroutines share the pools of encoders and decoders; each must get its own records back.
func TestConcurrentCodecs(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			var w record.Builder
			var s record.Scratch
			value := bytes.Repeat([]byte{byte(g)}, 100+g)
			for i := range 50 {
				w.Reset(record.BuilderOptions{Codec: codecs[i%len(codecs)]})
				w.Append(1, nil, value, nil)
				b, err := w.Batch()
				if err != nil {
					t.Error(err)
					return
				}
				for r, err := range b.Records(&s) {
					if err != nil || !bytes.Equal(r.Value, value) {
						t.Errorf("goroutine %d, round %d: %x, %v", g, i, r.Value, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}
