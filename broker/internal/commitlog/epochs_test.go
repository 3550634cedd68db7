package commitlog

import (
	"fmt"
	"strings"
	"testing"
)

func TestEpochs(t *testing.T) {
	t.Parallel()
	var e epochs
	if found, end := e.end(0, 10); found != -1 || end != -1 {
		t.Fatalf("nothing is known: %d, %d", found, end)
	}
	for _, c := range []struct {
		epoch int32
		start int64
		want  bool
	}{{0, 0, true}, {0, 5, false}, {2, 5, true}, {1, 7, false}, {4, 9, true}, {5, 9, true}, {-1, 20, false}} {
		if got := e.assign(c.epoch, c.start); got != c.want {
			t.Errorf("assign %d at %d: %v", c.epoch, c.start, got)
		}
	}
	for _, c := range []struct {
		epoch, found int32
		end          int64
	}{{0, 0, 5}, {1, 0, 5}, {2, 2, 9}, {3, 2, 9}, {4, 2, 9}, {5, 5, 30}, {6, -1, -1}, {-1, -1, -1}} {
		if found, end := e.end(c.epoch, 30); found != c.found || end != c.end {
			t.Errorf("end of %d is %d, %d, want %d, %d", c.epoch, found, end, c.found, c.end)
		}
	}
	for offset, want := range map[int64]int32{0: 0, 4: 0, 5: 2, 8: 2, 9: 5, 100: 5, -1: -1} {
		if got := e.at(offset); got != want {
			t.Errorf("at %d: %d, want %d", offset, got, want)
		}
	}
	text := e.encode()
	if string(text) != "0\n3\n0 0\n2 5\n5 9\n" {
		t.Fatalf("%q", text)
	}
	var back epochs
	if err := back.decode(text); err != nil || fmt.Sprint(back.view()) != fmt.Sprint(e.view()) {
		t.Fatalf("%v, %v", back.view(), err)
	}
	if !e.trim(6, 8) || fmt.Sprint(e.view()) != "[{2 6}]" {
		t.Fatalf("trimmed to 6..8: %v", e.view())
	}
	if found, end := e.end(0, 8); found != 0 || end != 6 {
		t.Fatalf("an epoch from before the log start ends there: %d, %d", found, end)
	}
}

// TestBadEpochFiles is the reader's half of S09: what does not rise or does not add up is no epoch file.
func TestBadEpochFiles(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "0", "0\n", "1\n0\n", "0\n1\n", "0\n1\n0 0\n1 1\n", "0\n2\n1 0\n1 5\n", "0\n2\n1 5\n2 4\n", "0\n1\n-1 0\n", "0\n1\n0 -1\n",
		"0\n1\n0\n", "0\n1\nx 0\n", "0\n1\n0 0 0\n", "0\n1\n99999999999 0\n", "0\n1\n0 0\n\x00", strings.Repeat("\x00", 20),
	} {
		var e epochs
		if err := e.decode([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	var e epochs
	if err := e.decode([]byte("0\n0\n")); err != nil {
		t.Errorf("an empty history: %v", err)
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	id := [16]byte{1, 2, 3, 255}
	if got, err := decodeMetadata(encodeMetadata(id)); got != id || err != nil {
		t.Fatalf("%v, %v", got, err)
	}
	for _, text := range []string{"", "version: 1\ntopic_id: AQID_wAAAAAAAAAAAAAAAA", "version: 0\n", "version: 0\ntopic_id: AQID", "version: 0\ntopic: x"} {
		if _, err := decodeMetadata([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := (Config{}).Validate(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]Config{ // S16
		"segment.bytes":                  {SegmentBytes: 1},
		"segment.ms":                     {SegmentMs: -1},
		"index.interval.bytes":           {IndexIntervalBytes: 1 << 40},
		"segment.index.bytes":            {IndexBytes: 4},
		"max.message.bytes":              {MaxMessageBytes: -1},
		"message.timestamp.after.max.ms": {TimestampAfterMaxMs: -1},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (Config{SegmentBytes: 1 << 62}).Validate(); err == nil {
		t.Error("segment.bytes of 2^62 is taken")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	if name := fileName(42, logSuffix); name != "00000000000000000042.log" {
		t.Fatal(name)
	}
	for _, name := range []string{"42.log", "x0000000000000000042.log", "leader-epoch-checkpoint", "00000000000000000042", "99999999999999999999.log", "-0000000000000000001.log"} {
		if offset, suffix, ok := parseName(name); ok && suffix != "" {
			t.Errorf("%s is taken for offset %d, %s", name, offset, suffix)
		}
	}
}
