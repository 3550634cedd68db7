package record_test

import (
	"runtime/debug"
	"testing"

	"github.com/millrace/millrace/core/record"
)

// These tests hold the promise that the produce and fetch paths rest on: nothing is allocated per record, and in the long
// run nothing per batch. They run without the collector, which may empty the pools of decoders at any time.

func allocs(t *testing.T, f func()) float64 {
	t.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	f() // fills pools and buffers
	return testing.AllocsPerRun(20, f)
}

func TestValidateDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops at random under the race detector")
	}
	for _, c := range codecs {
		b := batchOf(t, c, 1000, 100)
		var s record.Scratch
		if n := allocs(t, func() {
			if _, err := b.Validate(record.Rules{MaxBytes: 1 << 20, CompactedTopic: true}, &s); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%v: %v allocations for a batch of 1000 records", c, n)
		}
	}
}

func TestReaderDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops at random under the race detector")
	}
	for _, c := range codecs {
		var w record.Builder
		w.Reset(record.BuilderOptions{Codec: c})
		for range 1000 {
			w.Append(1, []byte("key"), []byte("value"), []record.Header{{Key: []byte("name"), Value: []byte("v")}})
		}
		b, err := w.Batch()
		if err != nil {
			t.Fatal(err)
		}
		var s record.Scratch
		sum := 0
		if n := allocs(t, func() {
			r, err := b.Reader(&s)
			if err != nil {
				t.Fatal(err)
			}
			for r.Next() {
				sum += len(r.Record().Value) + len(r.Record().Headers)
			}
			if r.Err() != nil {
				t.Fatal(r.Err())
			}
		}); n > 0 {
			t.Errorf("%v: %v allocations for a batch of 1000 records", c, n)
		}
		if sum == 0 {
			t.Error("nothing was read")
		}
	}
}

func TestBuilderDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops at random under the race detector")
	}
	key, value, headers := []byte("key"), make([]byte, 100), []record.Header{{Key: []byte("name")}}
	producer := &record.Producer{ID: 7}
	for _, c := range codecs {
		var w record.Builder
		n := allocs(t, func() {
			w.Reset(record.BuilderOptions{Codec: c, Producer: producer})
			for i := range 1000 {
				w.Append(int64(i), key, value, headers)
			}
			if _, err := w.Batch(); err != nil {
				t.Fatal(err)
			}
		})
		if n > 0 {
			t.Errorf("%v: %v allocations for a batch of 1000 records", c, n)
		}
	}
}

func TestHeaderDoesNotAllocate(t *testing.T) {
	buf := batchOf(t, record.None, 10, 10)
	var sum int64
	if n := testing.AllocsPerRun(100, func() {
		b, err := record.Single(buf)
		if err != nil {
			t.Fatal(err)
		}
		b.SetBaseOffset(b.BaseOffset() + 1)
		b.SetLeaderEpoch(3)
		sum += b.LastOffset() + b.MaxTimestamp() + b.ProducerID() + int64(b.LastSequence()) + int64(b.Attributes())
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	marker := make([]byte, 0, 128)
	if n := testing.AllocsPerRun(100, func() { marker = record.BuildControl(marker[:0], record.Marker{})[:0] }); n > 0 {
		t.Errorf("%v allocations for a marker", n)
	}
	if sum == 0 {
		t.Error("nothing was read")
	}
}
