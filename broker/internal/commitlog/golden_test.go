package commitlog

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/txn/isolation"
)

// TestReadsKafkasIndexes decodes the index files of Apache Kafka 4.4.0 and compares each entry with the truth beside them.
func TestReadsKafkasIndexes(t *testing.T) {
	t.Parallel()
	files := archive(t)
	entries := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		dir, ok := strings.CutSuffix(name, ".decoded.jsonl")
		if !ok {
			continue
		}
		var want, have []string
		for s := bufio.NewScanner(bytes.NewReader(files[name])); s.Scan(); {
			var l struct {
				Kind, File                  string
				Offset, Position, Timestamp int64
				Producer                    int64 `json:"producer_id"`
				First                       int64 `json:"first_offset"`
				Last                        int64 `json:"last_offset"`
				Stable                      int64 `json:"last_stable_offset"`
			}
			if err := json.Unmarshal(s.Bytes(), &l); err != nil {
				continue // a record, whose values have many shapes
			}
			switch l.Kind {
			case "index":
				want = append(want, fmt.Sprint(l.File, l.Offset, l.Position))
			case "timeindex":
				want = append(want, fmt.Sprint(l.File, l.Offset, l.Timestamp))
			case "txnindex":
				want = append(want, fmt.Sprint(l.File, isolation.AbortedTxn{ProducerID: l.Producer, FirstOffset: l.First, LastOffset: l.Last, LastStableOffset: l.Stable}))
			}
			entries[l.Kind]++
		}
		for file, content := range files {
			if path.Dir(file) != dir {
				continue
			}
			have = append(have, decodeIndex(t, path.Base(file), content)...)
		}
		slices.Sort(want)
		slices.Sort(have)
		if !slices.Equal(have, want) {
			t.Errorf("%s:\nhave %v\nwant %v", dir, have, want)
		}
	}
	if entries["index"] < 100 || entries["timeindex"] < 50 || entries["txnindex"] < 20 {
		t.Fatalf("compared only %v", entries)
	}
}

func decodeIndex(t *testing.T, name string, content []byte) (out []string) {
	t.Helper()
	base, suffix, ok := parseName(name)
	if !ok {
		return nil
	}
	switch suffix {
	case indexSuffix:
		list, ok := parseOffsets(trimZeros(content, offsetEntrySize), 1<<40)
		if !ok {
			t.Errorf("%s does not parse", name)
		}
		for _, e := range list {
			out = append(out, fmt.Sprint(name, base+int64(e.relative), int64(e.position)))
		}
	case timeSuffix:
		list, ok := parseTimes(trimZeros(content, timeEntrySize))
		if !ok {
			t.Errorf("%s does not parse", name)
		}
		for _, e := range list {
			out = append(out, fmt.Sprint(name, base+int64(e.relative), e.timestamp))
		}
	case txnSuffix:
		list, err := isolation.ParseIndex(content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, a := range list {
			out = append(out, fmt.Sprint(name, a))
		}
	}
	return out
}

// trimZeros cuts the zeros off that a running broker has behind the entries.
func trimZeros(p []byte, size int) []byte {
	for len(p) >= size && len(bytes.Trim(p[len(p)-size:], "\x00")) == 0 {
		p = p[:len(p)-size]
	}
	return p
}

func archive(t testing.TB) map[string][]byte {
	t.Helper()
	f, err := os.Open("testdata/kafka-4.4.0.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if out[h.Name], err = io.ReadAll(tr); err != nil {
				t.Fatal(err)
			}
		}
	}
}
