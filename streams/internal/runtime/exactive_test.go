package runtime_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/txn/session"
)

// Pitfall 6 (KAFKA-9891): a process that dies in the middle of a commit, twice, comes
// back as the keeper of copies of what it ran, and then has to run it again: nothing
// of what it had not committed is in its stores.
func TestPitfall06FormerOwnerBecomesACleanCopy(t *testing.T) {
	t.Parallel()
	f := &failover{job: newJob(t, time.Minute), rnd: rand.New(rand.NewPCG(6, 6))}
	f.label()
	for i := range f.places {
		f.places[i] = &member{name: string(rune('a' + i)), dir: t.TempDir()}
	}
	f.begin(0)
	f.send(200)
	f.await(f.places[0].run)
	f.begin(1)
	for round, step := range []session.Step{session.StepEnd, runtime.StepStore} {
		m, other := f.places[round%2], f.places[1-round%2]
		f.crash(m, step)
		if m.run != nil {
			t.Fatalf("%s had nothing to commit", m.name)
		}
		f.expelAll(m)
		f.await(other.run)
		f.checkStores(m.dir)
		f.begin(round % 2) // as a keeper of copies, until it is given tasks again
		f.send(100)
		f.await(other.run, m.run)
	}
	f.finish(f.places[0].run)
	f.expelAll(f.places[0])
	f.send(100)
	f.await(f.places[1].run)
	f.finish(f.places[1].run)
	f.check()
	for _, m := range f.places[:2] {
		f.checkStores(m.dir)
	}
}

// Pitfall 5 (KAFKA-20416): a broker that restarts while stores are being restored, one
// of them from its source topic: no look-up finds an empty table.
func TestPitfall05BrokerRestartsDuringARestore(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	j := newJobOn(t, time.Minute, m)
	j.label()
	j.send(1000)
	j.once(t.TempDir())
	for range 3 {
		j.send(300)
		o := j.options("") // restores everything
		at := states(&o)
		r := j.start(o)
		j.waitFor(at, runtime.Restoring)
		m.node.Restart(t)
		j.await(r)
		j.finish(r)
	}
	j.check()
}
