package replicas

import (
	"log/slog"
	"maps"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

var quiet = slog.New(slog.DiscardHandler)

// node is a manager and what it stands on.
type node struct {
	t       testing.TB
	fs      vfs.FS
	dir     string
	flusher *flush.Flusher
	files   *commitlog.Files
	m       *Manager
}

func startNode(t testing.TB, fsys vfs.FS, dir string) *node {
	t.Helper()
	n := &node{t: t, fs: fsys, dir: dir, files: commitlog.NewFiles(20)}
	var err error
	if n.flusher, err = flush.New(flush.Options{FS: fsys, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	n.m = New(Options{
		FS: fsys, Dir: dir, Flusher: n.flusher, Files: n.files, Clock: clock.System(), Logger: quiet, Durable: true,
	})
	return n
}

func (n *node) stop() {
	n.t.Helper()
	if err := n.m.Close(); err != nil {
		n.t.Fatal(err)
	}
	if err := n.flusher.Close(); err != nil {
		n.t.Fatal(err)
	}
}

// image has topics of so many partitions each.
func image(t testing.TB, topics, partitions int) *metadata.Image {
	t.Helper()
	var changes []metadata.Change
	for i := range topics {
		id := metadata.ID{1, byte(i >> 8), byte(i)}
		changes = append(changes, metadata.TopicChange{Name: "topic-" + strconv.Itoa(i), ID: id})
		for p := range partitions {
			changes = append(changes, metadata.PartitionChange{TopicID: id, Partition: int32(p), Leader: 1})
		}
	}
	im, err := metadata.Empty("cluster", 1).Apply(int64(len(changes)), changes)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func (n *node) writeFirst() {
	n.t.Helper()
	var b record.Builder
	b.Reset(record.BuilderOptions{})
	b.Append(1_700_000_000_000, nil, make([]byte, 100), nil)
	batch, err := b.Batch()
	if err != nil {
		n.t.Fatal(err)
	}
	for p := range n.m.All() {
		own := append([]byte(nil), batch...)
		if _, err := p.Append(own, partition.AppendOptions{RequestVersion: 12}); err != nil {
			n.t.Fatal(err)
		}
	}
}

func heap() int64 {
	var s runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// TestIdlePartitionIsSmall: what a silent partition with a record in it keeps in memory after a restart.
func TestIdlePartitionIsSmall(t *testing.T) {
	const partitions = 300
	dir := t.TempDir()
	im := image(t, 1, partitions)
	n := startNode(t, vfs.OS(), dir)
	if err := n.m.Prepare(im); err != nil {
		t.Fatal(err)
	}
	n.writeFirst()
	n.stop()
	before := heap()
	n = startNode(t, vfs.OS(), dir)
	if err := n.m.Prepare(im); err != nil {
		t.Fatal(err)
	}
	each := (heap() - before) / partitions
	t.Logf("a silent partition keeps %d bytes in memory", each)
	if each > 2400 {
		t.Errorf("a silent partition keeps %d bytes in memory", each)
	}
	if open := n.files.Open(); open > 20+parallel {
		t.Errorf("%d files are open, 20 may be", open)
	}
	runtime.KeepAlive(im)
	n.stop()
}

// TestCreateOperations counts what a new partition asks of the file system: no sync until it has a record, and one of each name and
// file then.
func TestCreateOperations(t *testing.T) {
	t.Parallel()
	const topics = 50
	disk := vfs.WithFaults(vfs.NewMem())
	if err := disk.MkdirAll("data"); err != nil {
		t.Fatal(err)
	}
	n := startNode(t, disk, "data")
	var mu sync.Mutex // guards count
	count := map[vfs.Kind]int{}
	disk.OnOp(func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind != vfs.OpClose && strings.HasPrefix(op.Path, filepath.Join("data", "topic-")) {
			count[op.Kind]++
		}
	})
	want := func(when string, want map[vfs.Kind]int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if !maps.Equal(count, want) {
			t.Errorf("%s: %v, want %v", when, count, want)
		}
		clear(count)
	}
	if err := n.m.Prepare(image(t, topics, 1)); err != nil {
		t.Fatal(err)
	}
	want("creation", map[vfs.Kind]int{
		vfs.OpStat: topics, vfs.OpList: topics, vfs.OpMkdir: topics, // is there anything?
		vfs.OpCreate: 2 * topics, vfs.OpWrite: topics, // partition.metadata and the log
	})
	n.writeFirst()
	for p := range n.m.All() {
		done := make(chan error, 1)
		p.AwaitDurable(0, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	delete(count, vfs.OpOpen) // of files that were not left open
	mu.Unlock()
	want("the first record", map[vfs.Kind]int{vfs.OpWrite: topics, vfs.OpSync: 2 * topics, vfs.OpSyncDir: topics})
	disk.OnOp(nil)
	n.stop()
}
