package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/broker/inspect"
	"github.com/millrace/millrace/core/vfs"
)

// crashTime is how long the long form of the matrix goes on, from MILLRACE_CRASH; 0 is the short form.
func crashTime(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv("MILLRACE_CRASH")
	if text == "" && soak() {
		text = "5m"
	}
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("MILLRACE_CRASH: %v", err)
	}
	return d
}

// TestCrashMatrix tells mixed stories, cuts the power at a share of their file operations and again while the broker starts on
// what is left, and looks at everything: the records and offsets that clients see, look-ups, the coordinators before and
// after another start, and the files themselves with the independent reader. The short form tells the same story
// every time; MILLRACE_CRASH=10m tells new ones for ten minutes (make test-crash).
func TestCrashMatrix(t *testing.T) {
	long := crashTime(t)
	end := time.Now().Add(long)
	seed, stories, steps, every, often := newSeed(t), 1, 60, 60, 150
	if long > 0 && os.Getenv("MILLRACE_SEED") == "" {
		seed, steps, every, often = uint64(time.Now().UnixNano()), 80, 20, 60
		t.Logf("stories begin at seed %d", seed)
	}
	cuts, again := 0, 0
	seen := map[string]int{}
	for i := 0; i < stories || time.Now().Before(end); i++ {
		story := seed + uint64(i)
		ok := t.Run(fmt.Sprint("seed=", story), func(t *testing.T) {
			m := tellMixed(t, story, steps, every)
			n, err := m.judge(t, story, often)
			cuts, again = cuts+len(m.told.got), again+n
			for what, n := range m.told.seen {
				seen[what] += n
			}
			if err != nil {
				for _, s := range m.steps {
					t.Log(s)
				}
				t.Fatalf("story of seed %d (MILLRACE_SEED=%d repeats it): %v", story, story, err)
			}
		})
		if !ok {
			break
		}
	}
	t.Logf("%d power cuts, %d more while starting again", cuts, again)
	if cuts < 8 && !t.Failed() {
		t.Errorf("only %d power cuts: the test shows little", cuts)
	}
	for _, what := range occasions {
		if seen[what] == 0 && !t.Failed() {
			t.Errorf("no story has a %q: they have %v", what, seen)
		}
	}
}

// occasions are what the stories must have done to the disk to be worth their name: appends and group commits, rolls, checkpoints,
// compaction from its first byte to its last rename, retention, deleted topics.
var occasions = []string{
	"write .log", "sync .log", "create .log", "remove .log", "write .index", "write .timeindex", "write .txnindex", "sync .txnindex",
	"rename .snapshot", "remove .snapshot", "create .cleaned", "sync .cleaned", "rename .swap", "rename .log", "remove .index",
	"rename cleaner-offset-checkpoint", "rename leader-epoch-checkpoint", "write recovery-journal", "sync recovery-journal",
	"create .metadata", "sync .metadata", "mkdir c-0", "rename c-0-delete", "remove c-0-delete",
}

// judge looks at what every power cut of the story left, and cuts the power again at one of often operations of the starts. It
// returns how many that were.
func (m *mixed) judge(t *testing.T, seed uint64, often int) (again int, err error) {
	rng := rand.New(rand.NewPCG(seed, 8))
	for _, left := range m.told.stop() {
		twice, err := m.survives(t, rng, left, often)
		for i := 0; err == nil && i < len(twice); i++ {
			_, err = m.survives(t, rng, twice[i], 0)
		}
		if again += len(twice); err != nil {
			return again, err
		}
	}
	return again, nil
}

// survives starts a broker on what a power cut left, checks all there is to check, and returns further power cuts during that
// start. Some of the starts clean while they are looked at, and some are stopped and started once more.
func (m *mixed) survives(t *testing.T, rng *rand.Rand, left remains, every int) (twice []remains, err error) {
	t.Helper()
	r := &reaper{rng: rng, mem: left.fs.Clone(), clock: m.clock.Load, every: every}
	cleans := rng.IntN(4) == 0
	var options []brokertest.Option
	if cleans {
		options = append(options, busy)
	}
	b := r.start(t, r.mem, options...)
	twice = r.stop()
	for i := range twice {
		twice[i].cut, twice[i].first = left.cut, left.String()
	}
	err = m.decided(b)
	if err == nil {
		err = m.holds(b, left.cut, nil)
	}
	if err == nil && !cleans {
		err = m.lookUps(b, rng)
	}
	before := ""
	if err == nil {
		before, err = m.memory(b)
	}
	stop(t, b)
	if err == nil {
		err = sound(r.mem)
	}
	if err == nil && rng.IntN(4) == 0 {
		b = r.start(t, r.mem)
		var after string
		if after, err = m.memory(b); err == nil && after != before {
			err = fmt.Errorf("the coordinators know something else after a clean restart:\n%s\nbefore it:\n%s", after, before)
		}
		stop(t, b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", left, err)
	}
	return twice, nil
}

// sound reads a disk with the independent reader: after a clean stop nothing is wrong, and nothing derived is missing.
func sound(fs vfs.FS) error {
	d, err := inspect.Open(fs, "data")
	if err != nil {
		return err
	}
	var first error
	err = d.Verify(inspect.VerifyOptions{}, func(f inspect.Finding) {
		if f.Severity > inspect.Note && first == nil {
			first = fmt.Errorf("the files after a clean stop: %v", f)
		}
	})
	if err != nil {
		return err
	}
	return first
}
