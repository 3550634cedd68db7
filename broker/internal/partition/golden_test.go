package partition

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// folder is a partition folder that Apache Kafka 4.4.0 wrote.
type folder struct {
	name    string // case/partition
	files   map[string][]byte
	truth   []line
	config  commitlog.Config
	live    bool
	topicID [16]byte
}

// line is a line of the decoded truth; a field is there in the kinds that have it.
type line struct {
	Kind, File, Codec, Text     string
	BaseOffset                  int64 `json:"base_offset"`
	LastOffsetDelta             int64 `json:"last_offset_delta"`
	Offset, Position, Timestamp int64
	Producer                    int64           `json:"producer_id"`
	First                       int64           `json:"first_offset"`
	Last                        int64           `json:"last_offset"`
	Stable                      int64           `json:"last_stable_offset"`
	Control                     json.RawMessage // of a batch: true or false
}

func golden(t *testing.T) []*folder {
	t.Helper()
	f, err := os.Open("../commitlog/testdata/kafka-4.4.0.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if all[h.Name], err = io.ReadAll(tr); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out []*folder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		truth, ok := strings.CutSuffix(name, ".decoded.jsonl")
		if !ok {
			continue
		}
		g := &folder{name: truth, files: map[string][]byte{}}
		for other, content := range all {
			if path.Dir(other) == truth {
				g.files[path.Base(other)] = content
			}
		}
		for s := bufio.NewScanner(bytes.NewReader(all[name])); s.Scan(); {
			var l line
			if err := json.Unmarshal(s.Bytes(), &l); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			g.truth = append(g.truth, l)
		}
		g.describe(t, all[path.Dir(name)+"/description.json"])
		out = append(out, g)
	}
	if len(out) < 22 {
		t.Fatalf("only %d folders", len(out))
	}
	return out
}

// describe takes over the topic's settings.
func (g *folder) describe(t *testing.T, text []byte) {
	t.Helper()
	var d struct {
		State  string
		Config map[string]string `json:"topic_config"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	g.live = strings.Contains(d.State, "running broker")
	number := func(key string) int64 {
		n, err := strconv.ParseInt(d.Config[key], 10, 64)
		if err != nil && d.Config[key] != "" {
			t.Fatal(err)
		}
		return n
	}
	g.config = commitlog.Config{
		SegmentBytes: number("segment.bytes"), SegmentMs: number("segment.ms"), IndexBytes: max(number("segment.index.bytes"), 0),
		IndexIntervalBytes: number("index.interval.bytes"), LogAppendTime: d.Config["message.timestamp.type"] == "LogAppendTime",
	}
	if g.config.IndexBytes == 0 {
		g.config.IndexBytes = 4096 // the node's setting
	}
	if d.Config["index.interval.bytes"] == "0" {
		g.config.IndexIntervalBytes = 1 // the same: every batch has more bytes
	}
	for _, l := range g.truth {
		if l.File == "partition.metadata" {
			id := strings.TrimPrefix(strings.Split(l.Text, "\n")[1], "topic_id: ")
			if g.topicID = topicIDOf(t, id); g.topicID == [16]byte{} {
				t.Fatal(l.Text)
			}
		}
	}
}

// place writes the folder's files to a memory disk.
func (g *folder) place(t *testing.T) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	if err := mem.MkdirAll("data/" + g.dir()); err != nil {
		t.Fatal(err)
	}
	g.noteStart(t, mem)
	for name, content := range g.files {
		if err := vfs.WriteFile(mem, filepath.Join("data", g.dir(), name), content, true); err != nil {
			t.Fatal(err)
		}
	}
	return mem
}

// noteStart tells the journal where the log starts, as an import does.
func (g *folder) noteStart(t *testing.T, fsys vfs.FS) {
	t.Helper()
	logs := slices.DeleteFunc(slices.Sorted(maps.Keys(g.files)), func(name string) bool { return filepath.Ext(name) != ".log" })
	start, err := strconv.ParseInt(strings.TrimSuffix(logs[0], ".log"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if start == 0 {
		return
	}
	index, err := strconv.ParseInt(g.dir()[strings.LastIndexByte(g.dir(), '-')+1:], 10, 32)
	if err == nil {
		err = flush.ChangeJournal(fsys, "data", func(points map[flush.ID]flush.Point) {
			points[flush.ID{Topic: g.topicID, Partition: int32(index)}] = flush.Point{LogStart: start}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (g *folder) dir() string { return path.Base(g.name) }

func (g *folder) open(t *testing.T, fsys vfs.FS) (*Partition, *flush.Flusher) {
	t.Helper()
	flusher, err := flush.New(flush.Options{FS: fsys, Dir: "data"})
	if err != nil {
		t.Fatal(err)
	}
	i := strings.LastIndexByte(g.dir(), '-')
	p, err := Open(Options{
		FS: fsys, Dir: filepath.Join("data", g.dir()), Topic: g.dir()[:i], TopicID: g.topicID, Log: g.config, Flusher: flusher,
		Clock: clock.System(), Durable: true,
	})
	if err != nil {
		t.Fatalf("%s: %v", g.name, err)
	}
	return p, flusher
}

func (g *folder) close(t *testing.T, p *Partition, f *flush.Flusher) {
	t.Helper()
	if err := errors.Join(p.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// same compares the folder on a disk with Kafka's. Our snapshots may have a section behind Kafka's entries; their count and
// entries must be the same when they have none.
func (g *folder) same(t *testing.T, fsys vfs.FS, suffixes ...string) {
	t.Helper()
	compared := 0
	for name, want := range g.files {
		if !slices.Contains(suffixes, filepath.Ext(name)) && !slices.Contains(suffixes, name) {
			continue
		}
		have, err := vfs.ReadFile(fsys, filepath.Join("data", g.dir(), name))
		if err != nil {
			t.Errorf("%s: %v", g.name, err)
			continue
		}
		if g.live {
			want = bytes.TrimRight(want, "\x00")
			have = bytes.TrimRight(have[:min(len(have), len(want))], "\x00")
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s: %s differs:\nhave %x\nwant %x", g.name, name, have[:min(len(have), 400)], want[:min(len(want), 400)])
		}
		compared++
	}
	if compared == 0 {
		t.Errorf("%s: nothing to compare", g.name)
	}
}

// TestKafkaFoldersOpenAndGoOn opens copies of Kafka's folders: all records are served as the truth has them, the indexes that
// recovery builds are Kafka's to the byte, and the log goes on, also after a reopening.
func TestKafkaFoldersOpenAndGoOn(t *testing.T) {
	t.Parallel()
	for _, g := range golden(t) {
		fsys := g.place(t)
		p, f := g.open(t, fsys)
		g.served(t, p)
		g.close(t, p, f)
		g.same(t, fsys, ".log", ".index", ".timeindex", ".txnindex", "partition.metadata")
		if g.dir() != "trimmed-0" { // its log start is in a file of the node, which is not part of the folder
			g.same(t, fsys, "leader-epoch-checkpoint")
		}
		for range 2 {
			p, f = g.open(t, fsys)
			g.served(t, p)
			end := p.Marks().LogEnd
			a, err := p.Append(plain.batch(t, 1_790_000_000_000, "more"), AppendOptions{RequestVersion: 12})
			if err != nil || a.BaseOffset != end || g.config.LogAppendTime != (a.LogAppendTimeMs >= 0) {
				t.Fatalf("%s: appended %+v, %v; the log ended at %d", g.name, a, err, end)
			}
			g.close(t, p, f)
		}
	}
}

// served compares every record with the truth.
func (g *folder) served(t *testing.T, p *Partition) {
	t.Helper()
	var want, have []string
	end := int64(0)
	for _, l := range g.truth {
		if l.Kind == "batch" {
			want = append(want, fmt.Sprintf("batch %d %d %s %v", l.BaseOffset, l.BaseOffset+l.LastOffsetDelta, l.Codec, string(l.Control)))
			end = max(end, l.BaseOffset+l.LastOffsetDelta+1)
		}
		if l.Kind == "record" {
			want = append(want, fmt.Sprintf("record %d %d", l.Offset, l.Timestamp))
		}
	}
	err := p.Replay(func(b record.Batch) error {
		if b.BaseOffset() >= end {
			return nil // ours
		}
		have = append(have, fmt.Sprintf("batch %d %d %s %v", b.BaseOffset(), b.LastOffset(), b.Attributes().Codec(), b.Attributes().Control()))
		for r, err := range b.Records(nil) {
			if err != nil {
				return err
			}
			have = append(have, fmt.Sprintf("record %d %d", r.Offset, r.Timestamp))
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", g.name, err)
	}
	if !slices.Equal(have, want) {
		t.Errorf("%s: replayed\n%s\nwant\n%s", g.name, strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
	if m := p.Marks(); m.LogEnd < end || len(want) > 0 && m.HighWatermark != m.LogEnd {
		t.Errorf("%s: %+v, want the end %d", g.name, m, end)
	}
}

// TestWritesWhatKafkaWrote appends the batches of each folder to a new log of the same settings: every file comes out as Kafka
// wrote it, segment by segment.
func TestWritesWhatKafkaWrote(t *testing.T) {
	t.Parallel()
	for _, g := range golden(t) {
		var logs []string
		for name := range g.files {
			if strings.HasSuffix(name, ".log") {
				logs = append(logs, name)
			}
		}
		slices.Sort(logs)
		if logs[0] != "00000000000000000000.log" {
			continue // its beginning was deleted
		}
		fsys := vfs.NewMem()
		if err := fsys.MkdirAll("data"); err != nil {
			t.Fatal(err)
		}
		p, f := g.open(t, fsys)
		for _, name := range logs {
			for b, err := range record.Batches(g.files[name]) {
				if err != nil {
					t.Fatal(err)
				}
				p.mu.Lock()
				if err := p.log.Append(b, p.nowMs()); err != nil {
					t.Fatal(err)
				}
				a, aborted, err := p.producers.Replay(b)
				if err != nil {
					t.Fatal(err)
				}
				if aborted {
					p.log.AddAborted(a)
				}
				p.mu.Unlock()
			}
		}
		p.handle.Dirty()
		g.close(t, p, f)
		g.same(t, fsys, ".log", ".index", ".timeindex", ".txnindex", "leader-epoch-checkpoint", "partition.metadata")
		if n := len(p.log.Segments()); n != len(logs) {
			t.Errorf("%s: %d segments, want %d", g.name, n, len(logs))
		}
	}
}
