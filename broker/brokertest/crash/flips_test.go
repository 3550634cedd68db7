package crash

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/broker/inspect"
	"github.com/millrace/millrace/core/vfs"
)

// diary is what a broker logged.
type diary struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

func (d *diary) option() brokertest.Option {
	return brokertest.Configure(func(c *broker.Config) { c.Logger = slog.New(slog.NewTextHandler(d, nil)) })
}

// files are all files below a folder that have content.
func files(t *testing.T, fsys vfs.FS, dir string) []string {
	t.Helper()
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := fsys.Stat(path)
		switch {
		case err != nil:
			t.Fatal(err)
		case info.Dir:
			out = append(out, files(t, fsys, path)...)
		case info.Size > 0:
			out = append(out, path)
		}
	}
	return out
}

// flip turns one bit of a file over and says which.
func flip(t *testing.T, rng *rand.Rand, fsys vfs.FS, path string) string {
	t.Helper()
	f, err := fsys.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() // in memory
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	at, bit := rng.Int64N(size), rng.IntN(8)
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << bit
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("byte %d of %d, bit %d", at, size, bit)
}

// TestFlippedBits turns over single bits in every kind of file after a clean stop and after a kill. Either all is as it
// was acknowledged, or what is not is named: by the error of the start, or in the log together with an answer that says
// so. Partitions whose files are whole go on.
func TestFlippedBits(t *testing.T) {
	each := 2
	if soak() {
		each = 40
	}
	seed := newSeed(t)
	for name, clean := range map[string]bool{"clean stop": true, "kill": false} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			s := &story{t: t}
			mem := vfs.NewMem()
			told := &reaper{rng: rng, mem: mem, clock: s.clock.Load}
			b := told.start(t, mem)
			s.tell(b)
			left := mem.Clone()
			stop(t, b)
			if clean {
				left = mem
			}
			count := map[string]int{}
			for _, path := range files(t, left, "data") {
				for range each {
					disk := left.Clone()
					where := flip(t, rng, disk, path)
					verdict, err := s.flipped(t, disk, path)
					if err != nil {
						t.Errorf("%s, %s: %v", path, where, err)
					}
					count[kind(path)+": "+verdict]++
				}
			}
			for what, n := range count {
				t.Logf("%4d %s", n, what)
			}
		})
	}
}

// TestFlippedBitsInMixed is TestFlippedBits for what a mixed story leaves: many segments, compaction's files, several partitions of
// everything.
func TestFlippedBitsInMixed(t *testing.T) {
	share := 8
	if soak() {
		share = 1
	}
	seed := newSeed(t)
	rng := rand.New(rand.NewPCG(seed, 11))
	m := tellMixed(t, seed, 60, 0)
	count, tried := map[string]int{}, 0
	for _, path := range files(t, m.disk, "data") {
		if rng.IntN(share) != 0 && kind(path) != "cleaner-offset-checkpoint" {
			continue
		}
		disk := m.disk.Clone()
		where := flip(t, rng, disk, path)
		if err := m.verified(disk, path); err != nil {
			t.Errorf("%s, %s: %v", path, where, err)
		}
		verdict, err := m.flipped(t, disk, path)
		if err != nil {
			t.Errorf("%s, %s: %v", path, where, err)
		}
		tried++
		count[kind(path)+": "+strings.SplitN(verdict, ":", 2)[0]]++
	}
	t.Logf("%d files: %v", tried, count)
}

// verified tells whether the independent reader finds and names a wrong bit in a file, where anything can: the data folder's own
// properties have nothing to be compared with.
func (s *story) verified(disk *vfs.Mem, path string) error {
	if kind(path) == ".properties" || kind(path) == "leader-epoch-checkpoint" && compacted(path) {
		return nil // the first batches of a compacted log may be gone, and with them what says where their epoch began
	}
	d, err := inspect.Open(disk, "data")
	if err != nil {
		return err
	}
	folder, file, found := filepath.Base(filepath.Dir(path)), filepath.Base(path), []string{}
	err = d.Verify(inspect.VerifyOptions{}, func(f inspect.Finding) {
		if f.Severity > inspect.Note || f.File == file { // where nothing was durable yet it is a note
			found = append(found, f.String())
		}
	})
	if err != nil {
		return err
	}
	for _, f := range found {
		if strings.Contains(f, file) || strings.Contains(f, folder) {
			return nil
		}
	}
	return fmt.Errorf("log verify does not find it, but %q", found)
}

func compacted(path string) bool {
	return strings.Contains(path, "__") || strings.Contains(path, "k-0")
}

// derived are the files that say nothing that the batches do not say.
var derived = map[string]bool{".index": true, ".timeindex": true, ".txnindex": true, ".snapshot": true, "leader-epoch-checkpoint": true, ".txnsum": true, "cleaner-offset-checkpoint": true}

func kind(path string) string {
	if ext := filepath.Ext(path); ext != "" {
		return ext
	}
	return filepath.Base(path)
}

// flipped starts a broker on a disk with a wrong bit and judges what it makes of it.
func (s *story) flipped(t *testing.T, disk *vfs.Mem, path string) (verdict string, err error) {
	t.Helper()
	d := new(diary)
	b, err := brokertest.TryStart(t, brokertest.OnFS(disk), small, d.option())
	folder := filepath.Base(filepath.Dir(path))
	if err != nil {
		if !strings.Contains(err.Error(), filepath.Base(path)) && !strings.Contains(err.Error(), folder) {
			return "refused", fmt.Errorf("the start fails and does not name the file: %w", err)
		}
		return "start refused", nil
	}
	defer stop(t, b)
	named := func() bool {
		said := d.String()
		return strings.Contains(said, "level=ERROR") && strings.Contains(said, folder)
	}
	hopeless := named
	if derived[kind(path)] {
		hopeless = nil
	}
	fits := s.holds(b, cut{s.clock.Load(), s.clock.Load()}, hopeless)
	switch {
	case fits == nil && named():
		return "all as it was, named in the log", nil
	case fits == nil:
		return "all as it was", nil
	case derived[kind(path)]:
		return "lost", fmt.Errorf("the file can be made again from the log, but %w\n%s", fits, d)
	}
	if !named() {
		return "silent", fmt.Errorf("%w; and the log says nothing of it:\n%s", fits, d)
	}
	if _, err := s.othersGoOn(b, folder); err != nil {
		return "others suffer", fmt.Errorf("%w (after: %w)\n%s", err, fits, d)
	}
	return "named in the log: " + fits.Error(), nil
}

// othersGoOn writes to and reads from every partition but the one whose folder is not well, and returns what it has written.
func (s *story) othersGoOn(c cluster, folder string) (facts []*writeFact, err error) {
	w := dial(s.t, c)
	defer w.close()
	for _, name := range s.names() {
		may, must := s.lives(name, cut{s.clock.Load(), s.clock.Load()})
		if !must { // it is gone, or was not surely made
			continue
		}
		for p := range may[0].partitions {
			if partitionName(name, p) == folder {
				continue
			}
			f := &writeFact{topic: may[len(may)-1], partition: p, values: []string{"more to " + partitionName(name, p)}, pid: -1}
			facts = append(facts, f)
			f.tried = s.clock.Add(1)
			row := w.produce(9, "", name, p, batch(-1, -1, -1, false, f.values...))
			if f.base = row.BaseOffset; row.ErrorCode == 0 {
				f.acked = s.clock.Add(1)
			}
			if row.ErrorCode != 0 {
				return facts, fmt.Errorf("produce to %s-%d: %s", name, p, code(row.ErrorCode))
			}
			start, c := w.offset(name, p, -2, false)
			if c != 0 {
				return facts, fmt.Errorf("ListOffsets of %s-%d: %s", name, p, code(c))
			}
			for at := start; at <= row.BaseOffset; {
				got := w.fetch(name, p, at, false)
				batches := decode(got.RecordBatches)
				if got.ErrorCode != 0 || len(batches) == 0 {
					return facts, fmt.Errorf("fetch of %s-%d at %d: %s", name, p, at, code(got.ErrorCode))
				}
				at = batches[len(batches)-1].last() + 1
			}
		}
	}
	return facts, nil
}
