package runtime_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/core/seedtest"
)

// storm is everything that goes wrong at once: two processes of two workers
// each, killed, frozen and started again, on a broker that restarts and loses
// its power, over connections that break and stall.
type storm struct {
	*job
	rnd      *rand.Rand
	machine  *machine
	dirs     []string
	children []*exec.Cmd // nil while one is down
	story    []string
}

// TestStorm: the counts are exact whatever happens, and the stores are the fold
// of their committed changelogs. MILLRACE_SOAK=n makes it n times as long,
// MILLRACE_SEED repeats a story as far as timing allows.
func TestStorm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	rounds := 1
	if n, err := strconv.Atoi(os.Getenv("MILLRACE_SOAK")); err == nil {
		rounds = n
	}
	seed := seedtest.New(t)
	m := newMachine(t)
	s := &storm{
		job: newJobOn(t, time.Duration(2+rounds)*time.Minute, m), rnd: rand.New(rand.NewPCG(seed, 3)), machine: m,
		dirs: []string{t.TempDir(), t.TempDir()}, children: make([]*exec.Cmd, 2),
	}
	t.Cleanup(s.killAll)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what happened: %v", s.story)
		}
	})
	s.label()
	for range rounds {
		for range 25 {
			s.send(60)
			s.strike()
		}
		s.calm()
		s.await()
	}
	for i := range s.children {
		s.end(s.children[i], syscall.SIGTERM)
		s.children[i] = nil
	}
	s.check()
	for _, dir := range s.dirs {
		s.checkStores(dir)
	}
}

func (s *storm) tell(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf(format, args...))
}

// strike does one bad thing, or starts what is down, and waits a little.
func (s *storm) strike() {
	s.t.Helper()
	i := s.rnd.IntN(2)
	switch n := s.rnd.IntN(20); {
	case s.children[i] == nil:
		s.tell("start %d", i)
		s.children[i] = s.child(s.dirs[i])
	case n < 3:
		s.tell("kill %d", i)
		s.end(s.children[i], syscall.SIGKILL)
		s.children[i] = nil
	case n < 5:
		s.freeze(i)
	case n < 7:
		seed := s.rnd.Uint64()
		s.tell("power cut %d", seed)
		s.machine.node.Crash(s.t, seed)
	case n < 9:
		s.tell("restart")
		s.machine.node.Restart(s.t)
	case n < 13:
		s.tell("cut")
		s.machine.cut(func() bool { return s.rnd.IntN(3) == 0 })
	case n < 16:
		s.tell("stall")
		s.machine.hold()
		time.Sleep(time.Duration(s.rnd.IntN(700)) * time.Millisecond)
		s.machine.release()
	default:
		s.tell("nothing")
	}
	time.Sleep(time.Duration(s.rnd.IntN(300)) * time.Millisecond)
}

// freeze stops a process, at times for longer than the group waits for it.
func (s *storm) freeze(i int) {
	s.t.Helper()
	d := time.Duration(s.rnd.IntN(1000)) * time.Millisecond
	if s.rnd.IntN(2) == 0 {
		d += 7 * time.Second
	}
	s.tell("freeze %d for %v", i, d)
	s.signal(i, syscall.SIGSTOP)
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		s.send(5)
	}
	s.signal(i, syscall.SIGCONT)
}

func (s *storm) signal(i int, sig syscall.Signal) {
	s.t.Helper()
	if err := s.children[i].Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// calm starts what is down.
func (s *storm) calm() {
	for i := range s.children {
		if s.children[i] == nil {
			s.children[i] = s.child(s.dirs[i])
		}
	}
}

func (s *storm) killAll() {
	for _, c := range s.children {
		if c != nil {
			// It may have ended by itself, which the test has noticed.
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
}
