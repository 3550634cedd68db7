package window_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/window"
)

func TestClosedToTheMillisecond(t *testing.T) {
	for _, c := range []struct {
		size, grace, start, streamTime int64
		closed                         bool
	}{
		{10, 0, 0, 9, false}, {10, 0, 0, 10, true},
		{10, 5, 0, 14, false}, {10, 5, 0, 15, true},
		{10, 5, 10, 24, false}, {10, 5, 10, 25, true},
		{1, 0, 7, 7, false}, {1, 0, 7, 8, true},
		{10, 0, math.MaxInt64 - 5, math.MaxInt64, false},
	} {
		s := window.Spec{SizeMs: c.size, AdvanceMs: c.size, GraceMs: c.grace}
		if got := s.Closed(c.start, c.streamTime); got != c.closed {
			t.Errorf("size %d, grace %d, start %d, stream time %d: closed %v", c.size, c.grace, c.start, c.streamTime, got)
		}
		if got := c.start < s.ClosedBefore(c.streamTime); got != c.closed {
			t.Errorf("size %d, grace %d, start %d, stream time %d: ClosedBefore is %d", c.size, c.grace, c.start, c.streamTime, s.ClosedBefore(c.streamTime))
		}
	}
}

func TestEachTimestampHasOneWindow(t *testing.T) {
	s := window.Tumbling(10*time.Millisecond, 0)
	for ts := range int64(100) {
		start := s.StartOf(ts)
		if start%10 != 0 || ts < start || ts >= start+10 {
			t.Errorf("timestamp %d is put into [%d,%d)", ts, start, start+10)
		}
		if w := window.Between(start, start+10); !w.Contains(time.UnixMilli(ts)) || w.Contains(w.End) {
			t.Errorf("%v does not contain %d, or contains its end", w, ts)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		spec window.Spec
		want string
	}{
		{window.Tumbling(time.Minute, 0), "<nil>"},
		{window.Tumbling(time.Microsecond, 0), "window size is 0 ms, at least 1 is needed"},
		{window.Tumbling(time.Minute, -time.Second), "grace is -1000 ms, must not be negative"},
	} {
		if got := fmt.Sprint(c.spec.Validate()); got != c.want {
			t.Errorf("%v: %s, want %s", c.spec, got, c.want)
		}
	}
}

func TestRowsOrderByWindowThenKey(t *testing.T) {
	type row struct {
		start int64
		key   string
	}
	want := []row{{0, ""}, {0, "b"}, {10, "a"}, {256, "z"}, {1 << 40, "a"}}
	var rows [][]byte
	for _, r := range want {
		rows = append(rows, window.AppendRow(nil, r.start, []byte(r.key)))
	}
	if !slices.IsSortedFunc(rows, bytes.Compare) {
		t.Errorf("rows are not in order: %x", rows)
	}
	for i, b := range rows {
		start, key, err := window.SplitRow(b)
		if err != nil || start != want[i].start || string(key) != want[i].key {
			t.Errorf("row %x is %d %q, %v", b, start, key, err)
		}
	}
	if _, _, err := window.SplitRow([]byte("short")); err == nil {
		t.Error("a row of 5 bytes was taken")
	}
}

func TestKeyWithoutSizeCanOnlyBeWritten(t *testing.T) {
	s, err := serde.For[window.Windowed[string]](new(serde.Registry))
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Append(nil, window.Key(window.Between(10, 20), "a"))
	if err != nil || string(b) != "a\x00\x00\x00\x00\x00\x00\x00\x0a" {
		t.Errorf("encodes as %q, %v", b, err)
	}
	if _, err := s.Decode(b); err != window.ErrSize {
		t.Errorf("decoding without a size: %v", err)
	}
	if _, err := window.Serde(serde.String, time.Second).Decode([]byte("1234567")); err == nil {
		t.Error("a windowed key of 7 bytes was taken")
	}
}

func ExampleSpec() {
	s := window.Tumbling(time.Minute, 10*time.Second)
	start := s.StartOf(90_000)
	fmt.Println(s)
	fmt.Println(window.Between(start, start+s.SizeMs))
	fmt.Println(s.Closed(start, 129_999), s.Closed(start, 130_000))
	// Output:
	// tumbling 1m0s, grace 10s
	// [1970-01-01T00:01:00.000Z, 1970-01-01T00:02:00.000Z)
	// false true
}

// TestSessionKeysAreKafkas compares with bytes of Kafka's own session stores.
func TestSessionKeysAreKafkas(t *testing.T) {
	s := window.SessionSerde(serde.String)
	for _, c := range []struct {
		key        string
		start, end int64
		want       string
	}{
		{"", 0, 10, "000000000000000a0000000000000000"},
		{"a", 10, 20, "610000000000000014000000000000000a"},
		{"clé", 1700000000000, 1700000060000, "636cc3a90000018bcfe652600000018bcfe56800"},
	} {
		k := window.Key(window.Between(c.start, c.end+1), c.key)
		b, err := s.Append(nil, k)
		if err != nil || fmt.Sprintf("%x", b) != c.want {
			t.Errorf("%v encodes as %x, %v, want %s", k, b, err, c.want)
		}
		if back, err := s.Decode(b); err != nil || back != k {
			t.Errorf("%x decodes as %v, %v, want %v", b, back, err, k)
		}
	}
	if _, err := s.Decode(make([]byte, 15)); err == nil {
		t.Error("a session key of 15 bytes was taken")
	}
}
