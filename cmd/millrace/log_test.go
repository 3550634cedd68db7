package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ownFolder is a data folder with ten records in each of two partitions, left by a server that was stopped cleanly.
func ownFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := server(t, dir)
	ok(t, "", "topic", "create", "orders", "--partitions", "2", "--brokers", s.addr)
	for range 10 {
		ok(t, "a:one\nb:two\n", "produce", "orders", "--key-separator", ":", "--brokers", s.addr)
	}
	s.stop(t, syscall.SIGTERM)
	return dir
}

// lines parses the lines of JSON that a command printed.
func lines(t *testing.T, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(out) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, v)
	}
	return all
}

// largest is the log file of the topic that has the most in it.
func largest(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "orders-*", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	best, most := "", int64(0)
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > most {
			best, most = f, info.Size()
		}
	}
	return best
}

func flipByte(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 8
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLogVerifyAndRepair(t *testing.T) {
	dir := ownFolder(t)
	out := lines(t, ok(t, "", "log", "verify", "--output", "json", dir))
	if last := out[len(out)-1]; last["clean"] != true || last["bytes"].(float64) == 0 {
		t.Errorf("an untouched folder: %v", out)
	}
	log := largest(t, dir)
	index := strings.TrimSuffix(log, ".log") + ".timeindex"
	if err := os.Remove(index); err != nil {
		t.Fatal(err)
	}
	partition := filepath.Base(filepath.Dir(log))
	if o := execute(t, "", "log", "verify", dir); o.code != 1 || !strings.Contains(o.out, "rebuildable: "+partition+": "+filepath.Base(index)) {
		t.Errorf("without a time index: %+v", o)
	}
	if o := execute(t, "", "log", "repair", dir); o.code != 0 || !strings.Contains(o.out, filepath.Base(index)+": made anew") {
		t.Errorf("repair: %+v", o)
	}
	ok(t, "", "log", "verify", dir)

	flipByte(t, log, 70) // in the first batch
	o := execute(t, "", "log", "verify", "--output", "json", "--quiet", filepath.Dir(log))
	if o.code != 1 {
		t.Fatalf("a flipped byte: %+v", o)
	}
	found := lines(t, o.out)[0]
	if found["severity"] != "damage" || found["partition"] != partition || found["file"] != filepath.Base(log) || found["position"] != 0.0 || found["offset"] != 0.0 {
		t.Errorf("found %v", found)
	}
	if o := execute(t, "", "log", "repair", filepath.Dir(log)); o.code != 1 || !strings.Contains(o.out, "left: damage") {
		t.Errorf("a repair of damage: %+v", o)
	}
	if o := execute(t, "", "log", "repair", "--truncate-at", "0", filepath.Dir(log)); o.code != 0 || !strings.Contains(o.out, partition+".1-stray") {
		t.Errorf("the cut: %+v", o)
	}
	ok(t, "", "log", "verify", dir)
	s := server(t, dir)
	ok(t, "a:new\n", "produce", "orders", "--key-separator", ":", "--brokers", s.addr)
	s.stop(t, syscall.SIGTERM)
	ok(t, "", "log", "verify", dir)
}

func TestLogDump(t *testing.T) {
	dir := ownFolder(t)
	partition := filepath.Dir(largest(t, dir))
	counts := map[string]int{}
	for _, v := range lines(t, ok(t, "", "log", "dump", "--records", "--output", "json", dir)) {
		kind := v["kind"].(string)
		counts[kind]++
		if kind == "record" && v["partition"] == "__cluster_metadata-0" && v["decoded_value"] == nil {
			t.Errorf("a metadata record that is not decoded: %v", v)
		}
	}
	for _, kind := range []string{"batch", "record", "timeindex", "snapshot", "text", "journal"} {
		if counts[kind] == 0 {
			t.Errorf("no %s in %v", kind, counts)
		}
	}
	out := lines(t, ok(t, "", "log", "dump", "--records", "--files", "log", "--from", "3", "--to", "5", "--output", "json", partition))
	var offsets []float64
	for _, v := range out {
		if v["kind"] == "record" {
			offsets = append(offsets, v["offset"].(float64))
		}
	}
	if len(offsets) != 2 || offsets[0] != 3 || offsets[1] != 4 {
		t.Errorf("records %v", offsets)
	}
	if text := ok(t, "", "log", "dump", "--offsets", partition); strings.Contains(text, "batch") || !strings.Contains(text, "timeindex") {
		t.Errorf("indexes alone: %s", text)
	}
}

func TestLogUsage(t *testing.T) {
	dir := t.TempDir()
	running := server(t, dir)
	defer running.stop(t, syscall.SIGTERM)
	for _, c := range []struct {
		args  string
		words string
	}{
		{"log verify", "needs"},
		{"log verify " + filepath.Join(dir, "nothing"), "no such file"},
		{"log verify " + t.TempDir(), "neither a broker's data folder"},
		{"log dump --from 5 --to 4 " + dir, "--to"},
		{"log dump --offsets --files log " + dir, "--offsets"},
		{"log repair " + dir, "in use"},
		{"log repair --truncate-at 5 " + dir, "one partition"},
		{"log repair --new-journal " + dir, "has a recovery journal"},
		{"log import " + dir, "--data-dir"},
		{"log import " + dir + " --data-dir " + filepath.Join(t.TempDir(), "new"), "not the data folder of an Apache Kafka"},
	} {
		if o := execute(t, "", strings.Fields(c.args)...); o.code != 2 || !strings.Contains(o.errout, c.words) {
			t.Errorf("millrace %s: exit code %d, %q, want 2 with %q", c.args, o.code, o.errout, c.words)
		}
	}
}

// Kafka's folder on a real disk: imported, served, and sound afterwards.
func TestLogImport(t *testing.T) {
	kafka, dir := t.TempDir(), filepath.Join(t.TempDir(), "new")
	untar(t, "../../broker/adopt/testdata/kafka-4.4.0-data.tar.gz", kafka)
	var r struct {
		Topics, Partitions int
	}
	if err := json.Unmarshal([]byte(ok(t, "", "log", "import", kafka, "--data-dir", dir, "--output", "json")), &r); err != nil || r.Topics != 5 || r.Partitions != 14 {
		t.Errorf("%+v, %v", r, err)
	}
	ok(t, "", "log", "verify", dir)
	s := server(t, dir)
	out := ok(t, "", "consume", "times", "--from-beginning", "--max-messages", "20", "--brokers", s.addr)
	if n := strings.Count(out, "\n"); n != 20 {
		t.Errorf("%d records: %s", n, out)
	}
	s.stop(t, syscall.SIGTERM)
	ok(t, "", "log", "verify", dir)
}

func untar(t *testing.T, from, to string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		path := filepath.Join(to, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The commands in docs/log-tools.md exist, with the flags that they are shown with.
func TestLogPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/log-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(page)) {
		_, command, ok := strings.Cut(line, "$ millrace ")
		if !ok {
			continue
		}
		seen++
		if o := execute(t, "", append(strings.Fields(command), "--help")...); o.code != 0 {
			t.Errorf("millrace %s: %s", strings.TrimSpace(command), o.errout)
		}
	}
	if seen < 8 {
		t.Errorf("only %d commands on the page", seen)
	}
}
