package runtime_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/state/pebble"
	"github.com/millrace/millrace/streams/state/statetest"
	"github.com/millrace/millrace/txn/session"
)

// engines are those on disk.
var engines = map[string]state.Engine{
	"goleveldb": state.GoLevelDB(),
	// A table in memory of the least size, so that it goes to disk all the time.
	"pebble": pebble.New(pebble.Options{CacheBytes: 1 << 20, MemTableBytes: 256 << 10}),
}

// crashAt runs the job again and again on a folder, until each of the given steps
// has ended it, with what the stores hold compared with their changelogs each time;
// and then to the end.
func (j *job) crashAt(dir string, tune func(*runtime.Options), steps ...session.Step) {
	j.t.Helper()
	for round, step := range steps {
		o := j.options(dir)
		tune(&o)
		var n atomic.Int64
		o.OnStep = func(_ int, s session.Step) error {
			if s == step && n.Add(1) == int64(2+round%3) {
				return errTestCrash
			}
			return nil
		}
		r := j.start(o)
		if err := j.feedUntilEnd(r); !errors.Is(err, errTestCrash) {
			j.t.Fatalf("crash %d, at %s: %v", round, step, err)
		}
		j.checkStores(dir)
	}
	o := j.options(dir)
	tune(&o)
	r := j.start(o)
	j.await(r)
	j.finish(r)
	j.check()
	j.checkStores(dir)
}

// KAFKA-7192: after a crash in the middle of a commit the store had kept what was
// never committed, and the replay added it once more.
func TestPitfall01UncommittedWritesStayOutOfStores(t *testing.T) {
	t.Parallel()
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 2*time.Minute)
			j.engine = engine
			j.label()
			j.crashAt(t.TempDir(), func(o *runtime.Options) { o.Store.FlushCommits = 1 }, session.StepEnd, session.StepFlush, session.StepEnd)
		})
	}
}

// KAFKA-20685: a checkpoint left by a restore, and a table in memory that went to
// disk in the background with what was aborted. Here each start restores into an
// empty folder, and everything goes to disk at once.
func TestPitfall02RestoreThenCrashBeforeACommit(t *testing.T) {
	t.Parallel()
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 2*time.Minute)
			j.engine = engine
			j.label()
			for range 3 {
				dir := t.TempDir()
				j.crashAt(dir, func(o *runtime.Options) {
					o.Store = state.OverlayOptions{FlushCommits: 1, FlushBytes: 1, CacheBytes: 1}
				}, runtime.StepLog)
			}
		})
	}
}

// KAFKA-12634, KAFKA-10362: what is written to disk while a transaction is open must
// not be what it has changed, however long it is open.
func TestPitfall04LongTransactionLeavesTheStoreAlone(t *testing.T) {
	t.Parallel()
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 2*time.Minute)
			j.engine = engine
			j.label()
			dir := t.TempDir()
			r := j.start(j.options(dir))
			j.send(200)
			j.await(r)
			j.finish(r)
			before := j.rows(dir, "counts")
			j.send(2000)
			o := j.options(dir)
			o.Workers, o.CommitInterval, o.TransactionTimeout = 1, 10*time.Second, 20*time.Second
			o.UncommittedBytes = 1 << 10 // commits when some is held, and the first of them is the crash
			o.OnStep = func(_ int, s session.Step) error {
				if s == session.StepEnd {
					return errTestCrash
				}
				return nil
			}
			if err := <-j.start(o).done; !errors.Is(err, errTestCrash) {
				t.Fatal(err)
			}
			j.checkStores(dir)
			if after := j.rows(dir, "counts"); !maps.Equal(before, after) {
				t.Errorf("without a commit the rows went from\n%v to\n%v", before, after)
			}
			r = j.start(j.options(dir))
			j.await(r)
			j.finish(r)
			j.check()
			j.checkStores(dir)
		})
	}
}

// rows are those of a store in all the tasks of a stopped process.
func (j *job) rows(dir, store string) map[string]string {
	j.t.Helper()
	all := map[string]string{}
	for p, img := range j.images(dir, store) {
		for k, v := range statetest.Dump(j.t, img) {
			all[fmt.Sprint(p, " ", k)] = v
		}
		if err := img.Close(); err != nil {
			j.t.Fatal(err)
		}
	}
	return all
}

// KAFKA-9450, KAFKA-13249: flush, commit and offsets in the wrong order. A crash
// between any two steps, with Pebble; TestCrashAtEveryStep has goleveldb.
func TestPitfall39CrashBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3*time.Minute)
	j.engine = engines["pebble"]
	j.label()
	j.crashAt(t.TempDir(), func(*runtime.Options) {},
		runtime.StepLog, session.StepFlush, session.StepOffsets, session.StepEnd, session.StepDone, runtime.StepStore, runtime.StepStored)
}

// full is an engine on a disk that has no room for a while.
type full struct {
	state.Engine
	writes  atomic.Int64
	refused atomic.Int64
}

// refuses says which of the writes find no room.
func (f *full) refuses() bool {
	n := f.writes.Add(1)
	if n < 20 || n >= 26 {
		return false
	}
	f.refused.Add(1)
	return true
}

func (f *full) Open(dir string) (state.Image, error) {
	img, err := f.Engine.Open(dir)
	if err != nil {
		return nil, err
	}
	return &fullImage{img, f}, nil
}

type fullImage struct {
	state.Image
	disk *full
}

func (i *fullImage) Apply(rows []state.Row, pos state.Position) error {
	if i.disk.refuses() {
		return fmt.Errorf("%w: no space left on device", state.ErrNoRoom)
	}
	return i.Image.Apply(rows, pos)
}

// said is a log that can be read while it is written.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

func (s *said) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.buf.String(), what)
}

// A disk that is full while stores are written costs time: the work goes on from the
// last commit when there is room again, the log says what it waits for, and the
// result is exact.
func TestFullDiskIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 2*time.Minute)
			disk := &full{Engine: engine}
			j.engine = disk
			j.label()
			dir, log := t.TempDir(), &said{}
			o := j.options(dir)
			o.Logger = slog.New(slog.NewTextHandler(log, nil))
			r := j.start(o)
			for disk.writes.Load() < 40 {
				j.send(100)
				j.await(r)
			}
			j.finish(r)
			j.check()
			j.engine = engine
			j.checkStores(dir)
			if disk.refused.Load() == 0 || log.count("no room to write") == 0 {
				t.Errorf("%d writes found no room, the log says so %d times", disk.refused.Load(), log.count("no room to write"))
			}
		})
	}
}

// Files that were changed while the process was away: the store is what it was at
// some commit, or is rebuilt from its changelog, which the log says; and the result
// is exact.
func TestDamagedStoresAreRebuilt(t *testing.T) {
	t.Parallel()
	harm := map[string]func(b []byte, rnd *rand.Rand) []byte{
		"flipped": func(b []byte, rnd *rand.Rand) []byte {
			for range 8 {
				b[rnd.IntN(len(b))] ^= byte(1 + rnd.IntN(255))
			}
			return b
		},
		"truncated": func(b []byte, rnd *rand.Rand) []byte { return b[:rnd.IntN(len(b))] },
	}
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seedtest.New(t), 5))
			j := newJob(t, 2*time.Minute)
			j.engine = engine
			j.label()
			dir, log := t.TempDir(), &said{}
			for _, kind := range []string{"flipped", "truncated", "flipped", "truncated"} {
				o := j.options(dir)
				o.Logger = slog.New(slog.NewTextHandler(log, nil))
				r := j.start(o)
				j.send(300)
				j.await(r)
				j.finish(r)
				damage(t, filepath.Join(dir, j.app, "stores"), func(b []byte) []byte { return harm[kind](b, rnd) })
			}
			r := j.start(j.options(dir))
			j.send(100)
			j.await(r)
			j.finish(r)
			j.check()
			j.checkStores(dir)
			if log.count("rebuilt") == 0 {
				t.Error("the log has no word of a store that is rebuilt")
			}
		})
	}
}

// damage changes all files below a folder that have contents.
func damage(t *testing.T, dir string, harm func([]byte) []byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 {
			return err
		}
		return os.WriteFile(path, harm(b), 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The stores of tasks that have gone to another process go after their time, those
// that are worked on stay.
func TestStoresOfTasksElsewhereAreRemoved(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	dirs := []string{t.TempDir(), t.TempDir()}
	o := j.options(dirs[0])
	o.Workers, o.Stores.CleanUpAfter = 1, 50*time.Millisecond
	a := j.start(o)
	j.send(200)
	j.await(a)
	o = j.options(dirs[1])
	o.Workers = 1
	b := j.start(o)
	for have := partitions; have > partitions/2; {
		images, err := filepath.Glob(filepath.Join(dirs[0], j.app, "stores", "counts", "*"))
		if err != nil {
			t.Fatal(err)
		}
		have = len(images)
		j.send(10)
		j.await(a, b)
	}
	j.finish(b)
	j.finish(a)
	j.check()
	j.checkStores(dirs[0])
	j.checkStores(dirs[1])
}
