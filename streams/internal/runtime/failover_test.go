package runtime_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/txn/session"
)

// failover is three places for processes of one application, each with a folder of its
// own, that keep copies of each other's stores, and die, freeze and come back.
type failover struct {
	*job
	rnd    *rand.Rand
	places [3]*member
	story  []string
}

// member is a process at a place.
type member struct {
	name string
	dir  string
	run  *running // nil while it is down

	mu     sync.Mutex
	strike session.Step  // at which it crashes or freezes; "" for never
	freeze chan struct{} // not nil: it freezes, until it is closed
	struck chan struct{} // closed when it does
}

// Steps at which things happen: around each of a commit.
var allSteps = []session.Step{
	runtime.StepLog, session.StepFlush, session.StepOffsets, session.StepEnd, session.StepDone, runtime.StepStore, runtime.StepStored,
}

// onStep does what is planned for the next step of a kind.
func (m *member) onStep(_ int, s session.Step) error {
	m.mu.Lock()
	if s != m.strike {
		m.mu.Unlock()
		return nil
	}
	m.strike = ""
	freeze := m.freeze
	close(m.struck)
	m.mu.Unlock()
	if freeze == nil {
		return errTestCrash
	}
	<-freeze
	return nil
}

// plan makes a process crash, or freeze, at its next step of a kind.
func (m *member) plan(s session.Step, freeze chan struct{}) (struck <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.strike, m.freeze, m.struck = s, freeze, make(chan struct{})
	return m.struck
}

// forget gives a plan up, unless it has been carried out.
func (m *member) forget() (late bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	late = m.strike == ""
	m.strike = ""
	return late
}

// TestPitfall07And21FailOver: whoever dies, freezes or leaves at whatever step of a
// commit, with copies that take over and former owners that become copies: the counts
// are exact, and each store is the fold of its committed changelog. With MILLRACE_SOAK
// it is 200 seeds.
func TestPitfall07And21FailOver(t *testing.T) {
	t.Parallel()
	seeds, rounds := 2, 6
	if seedtest.Soak() {
		seeds, rounds = 200, 12
	} else if testing.Short() {
		seeds = 1
	}
	first := seedtest.New(t)
	for n := range seeds {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if !seedtest.Soak() {
				t.Parallel()
			}
			f := &failover{job: newJob(t, 3*time.Minute), rnd: rand.New(rand.NewPCG(first, uint64(n)))}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("seed %d/%d: %v", first, n, f.story)
				}
			})
			f.play(rounds)
		})
	}
}

func (f *failover) play(rounds int) {
	f.t.Helper()
	f.label()
	for i := range f.places {
		f.places[i] = &member{name: fmt.Sprintf("p%d", i), dir: f.t.TempDir()}
	}
	f.begin(0)
	f.begin(1)
	for range rounds {
		f.send(60)
		f.act(f.rnd.IntN(len(f.places)))
	}
	for i, m := range f.places {
		if m.run == nil {
			f.begin(i)
		}
	}
	var runs []*running
	for _, m := range f.places {
		runs = append(runs, m.run)
	}
	f.await(runs...)
	for _, m := range f.places {
		f.finish(m.run)
	}
	f.check()
	for _, m := range f.places {
		f.checkStores(m.dir)
	}
}

func (f *failover) tell(format string, args ...any) {
	f.story = append(f.story, fmt.Sprintf(format, args...))
}

// begin starts a process at a place.
func (f *failover) begin(i int) {
	m := f.places[i]
	f.tell("start %s", m.name)
	o := f.options(m.dir)
	o.InstanceID, o.Workers, o.Standbys, o.AcceptableLag = m.name, 1+i%2, 1, 20
	o.TransactionTimeout, o.OnStep = 2*time.Second, m.onStep
	o.Leave = f.rnd.IntN(2) == 0
	m.run = f.start(o)
}

// act does one thing at a place.
func (f *failover) act(i int) {
	f.t.Helper()
	m := f.places[i]
	step := allSteps[f.rnd.IntN(len(allSteps))]
	switch n := f.rnd.IntN(10); {
	case m.run == nil:
		f.begin(i)
	case n < 5:
		f.tell("crash %s at %s", m.name, step)
		f.crash(m, step)
		if f.rnd.IntN(2) == 0 {
			f.expelAll(m)
		}
	case n < 8:
		f.tell("freeze %s at %s", m.name, step)
		f.zombie(m, step)
	default:
		f.tell("stop %s", m.name)
		f.finish(m.run)
		m.run = nil
	}
}

// patience is how long a process that may have nothing to commit is waited for.
const patience = 3 * time.Second

// crash ends a process at a step, as a kill there would.
func (f *failover) crash(m *member, step session.Step) {
	f.t.Helper()
	struck := m.plan(step, nil)
	if !f.feed(struck, patience) && !m.forget() {
		return // it has nothing to do
	}
	select {
	case err := <-m.run.done:
		if !errors.Is(err, errTestCrash) {
			f.t.Fatalf("%s ended with %v", m.name, err)
		}
	case <-f.ctx.Done():
		f.t.Fatalf("%s does not end", m.name)
	}
	m.run = nil
}

// zombie freezes a process at a step, has others take its tasks over, and lets it go
// on.
func (f *failover) zombie(m *member, step session.Step) {
	f.t.Helper()
	thaw := make(chan struct{})
	defer close(thaw)
	struck := m.plan(step, thaw)
	if !f.feed(struck, patience) && !m.forget() {
		return
	}
	f.expelAll(m)
	never := make(chan struct{})
	f.feed(never, time.Duration(f.rnd.IntN(1200))*time.Millisecond)
}

// feed sends events until something has happened, or for some time.
func (f *failover) feed(until <-chan struct{}, limit time.Duration) bool {
	f.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-until:
			return true
		case <-timer.C:
			return false
		case <-time.After(20 * time.Millisecond):
			f.send(8)
		}
	}
}

// expelAll removes the workers of a process from the group, those that are in it.
func (f *failover) expelAll(m *member) {
	f.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = f.app
	for n := range 2 {
		id := fmt.Sprintf("%s-%d", m.name, n)
		lm := kmsg.NewLeaveGroupRequestMember()
		lm.InstanceID = &id
		req.Members = append(req.Members, lm)
	}
	resp, err := req.RequestWith(f.ctx, f.admin)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, r := range resp.Members {
		err := kerr.ErrorForCode(r.ErrorCode)
		if err != nil && !slices.Contains([]error{kerr.UnknownMemberID}, err) {
			f.t.Fatal(err)
		}
	}
}
