package inspect

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/core/vfs"
)

// golden is testdata/kafka-4.4.0.tar.gz: all files by their path, unpacked.
var golden = sync.OnceValues(func() (map[string][]byte, error) {
	packed, err := os.ReadFile("testdata/kafka-4.4.0.tar.gz")
	if err != nil {
		return nil, err
	}
	return unpack(packed, "")
})

func unpack(packed []byte, dir string) (map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		name := path.Join(dir, h.Name)
		switch {
		case path.Base(name) == "partitions.tar.gz":
			inner, err := unpack(data, path.Dir(name))
			if err != nil {
				return nil, err
			}
			maps.Copy(out, inner)
			continue
		case strings.HasSuffix(name, ".gz"):
			z, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				return nil, err
			}
			if data, err = io.ReadAll(z); err != nil {
				return nil, err
			}
			name = strings.TrimSuffix(name, ".gz")
		}
		out[name] = data
	}
}

// goldenFiles gives the files, or fails the test.
func goldenFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := golden()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// lay puts the files below a folder of the golden data, without that folder, into a folder of a file system.
func lay(t *testing.T, fsys vfs.FS, from, to string) {
	t.Helper()
	for name, data := range goldenFiles(t) {
		rest, ok := strings.CutPrefix(name, from+"/")
		if !ok || strings.Contains(rest, ".decoded.jsonl") {
			continue
		}
		put(t, fsys, path.Join(to, rest), data)
	}
}

func put(t *testing.T, fsys vfs.FS, name string, data []byte) {
	t.Helper()
	if err := fsys.MkdirAll(path.Dir(name)); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// cases lists the golden partitions: case/topic-partition.
func cases(t *testing.T) []string {
	var out []string
	for name := range goldenFiles(t) {
		if c, ok := strings.CutSuffix(name, ".decoded.jsonl"); ok {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return out
}

// Every folder that Kafka wrote is shown exactly as the truth beside it says: every batch, record, entry, snapshot and text.
func TestGolden(t *testing.T) {
	all := cases(t)
	if len(all) < 80 {
		t.Fatalf("only %d partitions", len(all))
	}
	lines := 0
	for _, name := range all {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			lay(t, fsys, name, "/"+path.Base(name))
			if _, err := fsys.Stat("/" + path.Base(name)); err != nil {
				t.Skip("the case has no files: that broker did not start")
			}
			p, err := openPartition(fsys, "/"+path.Base(name))
			if err != nil {
				t.Fatal(err)
			}
			want := truth(t, name, p)
			i := 0
			err = p.Walk(WalkOptions{Records: true}, func(item Item) error {
				got := reparsed(t, item)
				if i >= len(want) {
					t.Fatalf("more than the %d lines of the truth: %v", len(want), got)
				}
				if !reflect.DeepEqual(got, want[i]) {
					t.Fatalf("line %d\n got %v\nwant %v", i+1, got, want[i])
				}
				if item.String() == "" {
					t.Fatalf("line %d has no text", i+1)
				}
				i++
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if i != len(want) {
				t.Fatalf("%d lines, the truth has %d", i, len(want))
			}
			lines += i
		})
	}
	t.Logf("%d partitions, %d lines", len(all), lines)
}

// truth reads the expected lines, less those of files that the case leaves out because they did not change.
func truth(t *testing.T, name string, p *Partition) []any {
	t.Helper()
	var out []any
	for line := range bytes.Lines(goldenFiles(t)[name+".decoded.jsonl"]) {
		var v map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if !p.has(v["file"].(string)) {
			continue
		}
		if v["kind"] == "record" {
			// The attributes of a record have no meaning, and package record gives none.
			if v["attributes"] != json.Number("0") {
				t.Fatalf("a record with attributes: %s", line)
			}
			delete(v, "attributes")
		}
		out = append(out, v)
	}
	return out
}

func reparsed(t *testing.T, item Item) any {
	t.Helper()
	b, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
