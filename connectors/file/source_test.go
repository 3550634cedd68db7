package file_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/file"
)

// write makes a file and returns its path.
func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// all reads a part from a position to its end; it returns the values and the
// position after each unit.
func all(t *testing.T, s *file.Source, path string, at *connectors.SourcePos) (values []string, after []connectors.SourcePos, err error) {
	t.Helper()
	r, err := s.Open(t.Context(), connectors.SourcePart{Name: path}, at)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if e := r.Close(); e != nil {
			t.Error(e)
		}
	}()
	for {
		u, err := r.Next(t.Context())
		if errors.Is(err, io.EOF) {
			return values, after, nil
		}
		if err != nil {
			return values, after, err
		}
		for _, rec := range u.Records {
			values = append(values, string(rec.Value))
		}
		after = append(after, u.Pos)
	}
}

func newSource(t *testing.T, path string, change ...func(*file.Config)) *file.Source {
	t.Helper()
	c := file.Config{Name: "s", Paths: []string{path}, Topic: "t", UnitRecords: 2}
	for _, f := range change {
		f(&c)
	}
	s, err := file.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFormats(t *testing.T) {
	t.Parallel()
	array := `[{"a":1}, {"a":[2,"x]"]},` + "\n" + `3, null ]` + "\n"
	want := []string{`{"a":1}`, `{"a":[2,"x]"]}`, `3`, `null`}
	for _, c := range []struct {
		name string
		data []byte
		want []string
	}{
		{"array.json", []byte(array), want},
		{"array.json.gz", gzipped(t, array), want},
		{"gzip-under-a-plain-name.json", gzipped(t, array), want},
		{"lines.jsonl", []byte("{\"a\":1}\n\n {\"a\":[2,\"x]\"]}\n3\nnull"), want},
		{"empty.json", nil, nil},
		{"blank.jsonl", []byte(" \n\n"), nil},
		{"empty-array.json", []byte(" [ ] "), nil},
		{"a.csv", []byte("\ufeffiata,\"na\"\"me\"\n00M,Thigpen\n\"0,0R\",\"Living\nston\"\n"), []string{`{"iata":"00M","na\"me":"Thigpen"}`, `{"iata":"0,0R","na\"me":"Living\nston"}`}},
		{"header-only.csv.gz", gzipped(t, "a,b\n"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := write(t, c.name, c.data)
			got, after, err := all(t, newSource(t, path), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
			if len(after) == 0 || !after[len(after)-1].Done {
				t.Errorf("the last position is not marked as the end: %+v", after)
			}
		})
	}
}

func TestDamagedFilesAreErrors(t *testing.T) {
	t.Parallel()
	whole := gzipped(t, `[1,2,3,4,5]`)
	for name, data := range map[string][]byte{
		"cut-array.json":       []byte(`[{"a":1},{"a":2}`),
		"cut-value.jsonl":      []byte("{\"a\":1}\n{\"a\":"),
		"after-array.json":     []byte(`[1,2] 3`),
		"comma.json":           []byte(`[1,,2]`),
		"cut.json.gz":          whole[:len(whole)-9],
		"bad-checksum.json.gz": append(bytes.Clone(whole[:len(whole)-8]), 1, 2, 3, 4, 11, 0, 0, 0),
		"short-line.csv":       []byte("a,b\n1\n"),
		"twice.csv":            []byte("a,a\n1,2\n"),
		"empty.csv":            nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, name, data)
			values, after, err := all(t, newSource(t, path), path, nil)
			if !errors.Is(err, connectors.ErrConfig) || !strings.Contains(err.Error(), path) {
				t.Errorf("got error %v (values %q), want one that matches ErrConfig and names the file", err, values)
			}
			for _, p := range after {
				if p.Done {
					t.Error("a damaged file is said to have ended")
				}
			}
		})
	}
}

func TestRecordTooLarge(t *testing.T) {
	t.Parallel()
	path := write(t, "big.json", []byte(`[1,"`+strings.Repeat("x", 300_000)+`"]`))
	_, _, err := all(t, newSource(t, path, func(c *file.Config) { c.MaxRecordBytes = 1 << 10 }), path, nil)
	if err == nil || !strings.Contains(err.Error(), "more than 1024 bytes") {
		t.Errorf("got error %v", err)
	}
	if _, _, err := all(t, newSource(t, path), path, nil); err != nil {
		t.Errorf("within the default limit: %v", err)
	}
}

func TestResumeAtEveryUnit(t *testing.T) {
	t.Parallel()
	path := write(t, "in.json", []byte(`[0,1,2,3,4,5,6]`))
	s := newSource(t, path)
	want, after, err := all(t, s, path, nil)
	if err != nil || len(want) != 7 || len(after) != 4 {
		t.Fatalf("%d values in %d units, error %v", len(want), len(after), err)
	}
	for i, p := range after {
		rest, _, err := all(t, s, path, &p)
		if err != nil {
			t.Fatal(err)
		}
		if from := min(2*i+2, 7); strings.Join(rest, ",") != strings.Join(want[from:], ",") {
			t.Errorf("after unit %d: got %v, want %v", i, rest, want[from:])
		}
	}
}

func TestChangedFileIsRefused(t *testing.T) {
	t.Parallel()
	path := write(t, "in.jsonl", []byte("1\n2\n3\n"))
	s := newSource(t, path)
	_, after, err := all(t, s, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, data := range map[string]string{"longer": "1\n2\n3\n4\n", "other bytes": "1\n2\n4\n"} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := all(t, s, path, &after[0]); !errors.Is(err, connectors.ErrConfig) || !strings.Contains(err.Error(), "changed") {
			t.Errorf("%s: got error %v", what, err)
		}
	}
}

func TestKeyAndTime(t *testing.T) {
	t.Parallel()
	path := write(t, "in.csv", []byte("date,n\n2001/01/01 00:47,7\n"))
	ny, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Skip("no time zones here:", err)
	}
	s := newSource(t, path, func(c *file.Config) {
		c.Key, c.Time = file.Field("n"), file.TimeField("date", "2006/01/02 15:04", ny)
	})
	r, err := s.Open(t.Context(), connectors.SourcePart{Name: path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	u, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := time.Date(2001, 1, 1, 5, 47, 0, 0, time.UTC)
	if rec := u.Records[0]; string(rec.Key) != "7" || !rec.Time.Equal(want) {
		t.Errorf("key %q time %v, want 7 and %v", rec.Key, rec.Time, want)
	}
	bad := newSource(t, path, func(c *file.Config) { c.Key = file.Field("missing") })
	if _, _, err := all(t, bad, path, nil); err == nil || !strings.Contains(err.Error(), `record 0: no field "missing"`) {
		t.Errorf("a missing key field: got error %v", err)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	_, err := file.New(file.Config{Paths: []string{"a.parquet", "b.csv", "b.csv"}, UnitRecords: -1, MaxRecordBytes: 1})
	for _, want := range []string{"Name: required", "Topic: required", "Paths[0]", "Paths[2]", "UnitRecords: -1 is outside 1..100000", "MaxRecordBytes: 1 is outside"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

// brokers runs the kit on a cluster of the caller's.
var brokers = flag.String("brokers", "", "host:port of a running cluster to run the conformance kit on")

type upstream struct {
	path  string
	topic string
	want  []string
}

func (u *upstream) New() (connectors.Source, error) {
	return file.New(file.Config{
		Name: u.topic, Paths: []string{u.path}, Topic: u.topic, UnitRecords: 10,
		Key: file.Field("id"), Time: file.TimeField("at", time.DateOnly, nil),
	})
}

func (u *upstream) Want() []string { return u.want }

func TestConformance(t *testing.T) {
	var cluster connectors.Cluster
	if *brokers != "" {
		cluster = connectors.Brokers(*brokers)
	} else {
		cluster = brokertest.Start(t)
	}
	conntest.RunSource(t, conntest.SourceKit{
		Cluster: cluster,
		Open: func(tb testing.TB, topic string) conntest.Upstream {
			u := &upstream{topic: topic}
			for i := range 105 {
				u.want = append(u.want, fmt.Sprintf(`{"id":%d,"at":"2001-02-03"}`, i))
			}
			u.path = write(tb, "in.json.gz", gzipped(tb, "["+strings.Join(u.want, ",\n")+"]"))
			return u
		},
	})
}

func TestCheckNamesTheFile(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "nothing.json")
	issues := newSource(t, missing).Check(context.Background())
	if len(issues) != 1 || !issues[0].Fatal || issues[0].Field != "Paths[0]" || !strings.Contains(issues[0].Text, missing) {
		t.Errorf("issues: %+v", issues)
	}
}
