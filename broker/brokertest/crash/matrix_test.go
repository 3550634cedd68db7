package crash

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/core/vfs"
)

// soak says whether the long forms run.
func soak() bool { return seedtest.Soak() }

// newSeed is the same in every normal run, which has to say the same about the same code; a soak looks for what is new.
func newSeed(t testing.TB) uint64 { return seedtest.New(t) }

// small keeps the number of files, and so of operations, low.
var small = brokertest.Configure(func(c *broker.Config) { c.InternalPartitions = 1 })

// remains is a disk after a power cut.
type remains struct {
	cut
	fs   *vfs.Mem
	op   vfs.Op
	seed uint64
	// first is the power cut before this one, if there was one.
	first string
}

func (r remains) String() string {
	if r.first != "" {
		return fmt.Sprintf("%s; starting again, power cut before operation %d (%s %s, clone seed %d)", r.first, r.op.Seq, r.op.Kind, r.op.Path, r.seed)
	}
	return fmt.Sprintf("power cut before operation %d (%s %s, clone seed %d)", r.op.Seq, r.op.Kind, r.op.Path, r.seed)
}

// reaper clones a disk at a share of the operations of a broker.
type reaper struct {
	mu    sync.Mutex
	rng   *rand.Rand
	mem   *vfs.Mem
	clock func() int64
	every int // one of so many operations; 0 is none
	got   []remains
	seen  map[string]int // what was done to which kind of file
}

func (r *reaper) before(op vfs.Op) {
	if op.Kind&vfs.OpChanges == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]int{}
	}
	r.seen[op.Kind.String()+" "+kind(op.Path)]++
	if r.every == 0 || r.rng.IntN(r.every) != 0 {
		return
	}
	left := remains{op: op, seed: r.rng.Uint64()}
	left.before = r.clock()
	left.fs = r.mem.CrashClone(left.seed)
	left.after = r.clock()
	r.got = append(r.got, left)
}

// stop ends the cloning and returns the power cuts so far.
func (r *reaper) stop() []remains {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.every = 0
	return r.got
}

// quiet keeps what a start after a power cut rightly warns of out of the test's log.
var quiet = brokertest.Configure(func(c *broker.Config) { c.Logger = slog.New(slog.DiscardHandler) })

// start starts a broker on a disk whose operations the reaper sees.
func (r *reaper) start(t testing.TB, fs vfs.FS, options ...brokertest.Option) *broker.Broker {
	t.Helper()
	disk := vfs.WithFaults(fs)
	disk.OnOp(r.before)
	return brokertest.Start(t, append(options, brokertest.OnFS(disk), small, quiet)...)
}

func stop(t testing.TB, b *broker.Broker) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatalf("close broker: %v", err)
	}
}

// TestPowerCutAtEveryOperation cuts the power while the story is told, checks what is left, and cuts the power again at
// a few operations of the start on it.
func TestPowerCutAtEveryOperation(t *testing.T) {
	every, again := 4, 100
	if soak() {
		every, again = 1, 10
	}
	seed := newSeed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := &story{t: t}
	told := &reaper{rng: rng, mem: vfs.NewMem(), clock: s.clock.Load, every: every}
	b := told.start(t, told.mem)
	s.tell(b)
	stop(t, b)
	second := 0
	for _, left := range told.stop() {
		twice, err := s.recovers(t, rng, left, again)
		for i := 0; err == nil && i < len(twice); i++ {
			_, err = s.recovers(t, rng, twice[i], 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		second += len(twice)
	}
	t.Logf("%d power cuts, %d while starting again", len(told.got), second)
	if len(told.got) < 50 {
		t.Errorf("only %d power cuts: the test shows little", len(told.got))
	}
}

// recovers starts a broker on what a power cut left, checks it, and returns further power cuts during that start.
func (s *story) recovers(t *testing.T, rng *rand.Rand, left remains, every int) ([]remains, error) {
	t.Helper()
	r := &reaper{rng: rng, mem: left.fs.Clone(), clock: s.clock.Load, every: every}
	b := r.start(t, r.mem)
	twice := r.stop()
	if err := s.holds(b, left.cut, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", left, err)
	}
	stop(t, b)
	for i := range twice {
		twice[i].cut, twice[i].first = left.cut, left.String()
	}
	return twice, nil
}

// liar is a disk that says it has synced the logs' files and has not.
type liar struct{ vfs.FS }

func (l liar) Create(path string) (vfs.File, error) {
	f, err := l.FS.Create(path)
	return lyingFile{f, strings.HasSuffix(path, ".log")}, err
}

func (l liar) Open(path string) (vfs.File, error) {
	f, err := l.FS.Open(path)
	return lyingFile{f, strings.HasSuffix(path, ".log")}, err
}

type lyingFile struct {
	vfs.File
	lies bool
}

func (f lyingFile) Sync() error {
	if f.lies {
		return nil
	}
	return f.File.Sync()
}

// TestTheChecksFindALoss tells the story on a disk that lies: the checks must see that something is missing.
func TestTheChecksFindALoss(t *testing.T) {
	rng := rand.New(rand.NewPCG(newSeed(t), 1))
	s := &story{t: t}
	mem := vfs.NewMem()
	told := &reaper{rng: rng, mem: mem, clock: s.clock.Load, every: 20}
	b := told.start(t, liar{mem})
	s.tell(b)
	stop(t, b)
	for _, left := range told.stop() {
		r := &reaper{rng: rng, mem: left.fs.Clone()}
		b, err := brokertest.TryStart(t, brokertest.OnFS(r.mem), small, quiet)
		if err == nil {
			err = s.holds(b, left.cut, nil)
			stop(t, b)
		}
		if err != nil {
			t.Logf("found: %v", err)
			return
		}
	}
	t.Errorf("%d power cuts on a disk that does not sync the logs, and no loss was found", len(told.got))
}
