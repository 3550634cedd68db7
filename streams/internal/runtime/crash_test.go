package runtime_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/txn/session"
)

var errTestCrash = errors.New("crash of the test")

// A crash before and after every step of a commit, at several commits, with the
// same folder afterwards: nothing is lost, nothing counts twice, and the stores
// equal the fold of their changelogs each time.
func TestCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, step := range []session.Step{
		runtime.StepLog, session.StepFlush, session.StepOffsets, session.StepEnd,
		session.StepDone, runtime.StepStore, runtime.StepStored,
	} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 2*time.Minute)
			dir := t.TempDir()
			j.label()
			for round := range 4 {
				o := j.options(dir)
				var n atomic.Int64
				at := int64(1 + round*2)
				if step == runtime.StepStore {
					at *= 3 // between the stores of one commit
				}
				o.OnStep = func(_ int, s session.Step) error {
					if s == step && n.Add(1) == at {
						return errTestCrash
					}
					return nil
				}
				r := j.start(o)
				if err := j.feedUntilEnd(r); !errors.Is(err, errTestCrash) {
					t.Fatalf("round %d: %v", round, err)
				}
				j.checkStores(dir)
			}
			r := j.start(j.options(dir))
			j.await(r)
			j.finish(r)
			j.check()
			j.checkStores(dir)
		})
	}
}

// feedUntilEnd sends events, so that commits keep coming, until the run ends.
func (j *job) feedUntilEnd(r *running) error {
	j.t.Helper()
	for {
		j.send(40)
		select {
		case err := <-r.done:
			return err
		case <-j.ctx.Done():
			j.t.Fatal("the run does not end")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// childConfig is what a test process gets to run.
type childConfig struct {
	Brokers                 []string
	App, Events, Words, Out string
	Dir                     string
}

const childEnv = "MILLRACE_TEST_CHILD"

func TestMain(m *testing.M) {
	raw := os.Getenv(childEnv)
	if raw == "" {
		os.Exit(m.Run())
	}
	var c childConfig
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("ready")
	j := &job{}
	err := runtime.Run(ctx, counting(c.App, c.Events, c.Words, c.Out, false), tcp(c.Brokers), j.options(c.Dir))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child starts the application in a process of its own, which from now on
// listens to signals.
func (j *job) child(dir string) *exec.Cmd {
	j.t.Helper()
	raw, err := json.Marshal(childConfig{Brokers: j.cluster.Seeds(), App: j.app, Events: j.events, Words: j.words, Out: j.out, Dir: dir})
	if err != nil {
		j.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		j.t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		j.t.Fatal(err)
	}
	return cmd
}

// end stops a child and waits for it.
func (j *job) end(cmd *exec.Cmd, sig syscall.Signal) {
	j.t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		j.t.Fatal(err)
	}
	err := cmd.Wait()
	if sig == syscall.SIGTERM && err != nil {
		j.t.Fatalf("child: %v", err)
	}
}

// results is how many results are committed.
func (j *job) results() int {
	n := 0
	for _, rs := range j.read(j.out, nil) {
		n += len(rs)
	}
	return n
}

// A process killed at random moments, again and again, with the same folder.
func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	seed := seedtest.New(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	j := newJob(t, 3*time.Minute)
	dir := t.TempDir()
	j.label()
	for range 8 {
		j.send(400)
		before := j.results()
		cmd := j.child(dir)
		// A third of the kills come while it starts, the others while results
		// appear.
		if rnd.IntN(3) > 0 {
			for j.results() <= before {
				if j.ctx.Err() != nil {
					t.Fatal("the child makes no progress")
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		time.Sleep(time.Duration(rnd.IntN(150)) * time.Millisecond)
		j.end(cmd, syscall.SIGKILL)
		j.checkStores(dir)
	}
	cmd := j.child(dir)
	j.await()
	j.end(cmd, syscall.SIGTERM)
	j.check()
	j.checkStores(dir)
}

// A process that is stopped long enough for others to take its tasks, and then
// goes on: what it still does is not seen.
func TestPausedZombie(t *testing.T) {
	t.Parallel()
	j := newJob(t, 2*time.Minute)
	dirs := []string{t.TempDir(), t.TempDir()}
	j.label()
	j.send(500)
	zombie := j.child(dirs[0])
	j.await()
	j.send(3000)
	before := j.results()
	for j.results() <= before {
		if j.ctx.Err() != nil {
			t.Fatal("no progress")
		}
	}
	// In the middle of its work, with a transaction open or about to be.
	if err := zombie.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	j.send(500)
	successor := j.child(dirs[1])
	j.await()
	if err := zombie.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	// Both are in the group again and share what comes.
	j.send(1000)
	j.await()
	j.end(zombie, syscall.SIGTERM)
	j.end(successor, syscall.SIGTERM)
	j.check()
	for _, dir := range dirs {
		j.checkStores(dir)
	}
}

// Processes that come and go while records flow.
func TestRebalanceInTheMiddle(t *testing.T) {
	t.Parallel()
	j := newJob(t, 2*time.Minute)
	dirs := []string{t.TempDir(), t.TempDir()}
	j.label()
	options := func(dir string) runtime.Options {
		o := j.options(dir)
		o.Workers, o.Leave = 1, true
		return o
	}
	j.send(1500)
	a := j.start(options(dirs[0]))
	j.send(1500)
	b := j.start(options(dirs[1]))
	j.send(1500)
	j.await(a, b)
	j.send(1500)
	j.finish(a)
	j.send(1500)
	j.await(b)
	a = j.start(options(dirs[0]))
	j.send(1500)
	j.await(a, b)
	j.finish(b)
	j.finish(a)
	j.check()
	for _, dir := range dirs {
		j.checkStores(dir)
	}
	// What was done was committed before it was handed over: nothing was done
	// twice. Each event passes two tasks, each label one.
	if got, want := j.calls.Load(), int64(2*j.sent+words); got != want {
		t.Errorf("%d records were processed, want %d", got, want)
	}
}

// A worker that the group has dropped in the middle of a commit. Before its
// offsets are in the transaction, the commit is refused; after that it stands,
// and the successor, who came before it was decided, waits for it.
func TestDroppedInTheMiddleOfACommit(t *testing.T) {
	t.Parallel()
	for _, at := range []session.Step{session.StepOffsets, session.StepEnd} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, time.Minute)
			j.label()
			j.send(300)
			reached, goOn := make(chan struct{}), make(chan struct{})
			var n atomic.Int64
			o := j.options(t.TempDir())
			// Long enough to be decided by the worker and not by a timeout.
			o.Workers, o.TransactionTimeout, o.InstanceID = 1, 40*time.Second, "dropped"
			// A purge would tell a successor that began at the wrong offset.
			o.PurgeInterval = time.Hour
			o.OnStep = func(_ int, s session.Step) error {
				if s == at && n.Add(1) == 3 {
					close(reached)
					<-goOn
				}
				return nil
			}
			dropped := j.start(o)
			for waiting := true; waiting; {
				j.send(20)
				select {
				case <-reached:
					waiting = false
				case <-time.After(5 * time.Millisecond):
				}
			}
			j.expel("dropped-0")
			o = j.options(t.TempDir())
			o.Workers, o.PurgeInterval = 1, time.Hour
			restoring := make(chan struct{}, 10)
			o.OnState = func(_ int, s runtime.State) {
				if s == runtime.Restoring {
					restoring <- struct{}{}
				}
			}
			successor := j.start(o)
			<-restoring
			// It asks for offsets and ends now, and must not get past the
			// undecided transaction whatever time it has.
			time.Sleep(300 * time.Millisecond)
			close(goOn)
			j.await(dropped, successor)
			j.finish(dropped)
			j.finish(successor)
			j.check()
		})
	}
}
