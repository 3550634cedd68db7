package runtime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/core/partition"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// states tells a test what a run is doing.
func states(o *runtime.Options) <-chan runtime.State {
	c := make(chan runtime.State, 100)
	o.OnState = func(_ int, s runtime.State) { c <- s }
	return c
}

func (j *job) waitFor(c <-chan runtime.State, want runtime.State) {
	j.t.Helper()
	for {
		select {
		case s := <-c:
			if s == want {
				return
			}
		case <-j.ctx.Done():
			j.t.Fatalf("no worker got to %s", want)
		}
	}
}

// What a former owner left undecided in a changelog belongs to its store once it
// is committed: a take-over waits for that, and does not begin with what is
// stable by now.
func TestTakeOverWaitsForUndecidedChangelogRecords(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	j.send(words * 2)
	r := j.start(j.options(t.TempDir()))
	j.await(r)
	j.finish(r)
	j.check()

	// The former owner had counted a hundred more of one word.
	w, changelog := word(0), topology.InternalName(j.app, "counts", topology.Changelog)
	c, err := session.Connect(j.ctx, session.ClusterOptions{Seeds: j.cluster.Seeds(), Dial: j.cluster.Dial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	owner, err := c.NewProducer(j.ctx, session.ProducerOptions{TransactionalID: j.app + "-former", Timeout: 40 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	part := session.TopicPartition{Topic: changelog, Partition: partition.ForKey([]byte(w), partitions)}
	row := session.Record{Topic: changelog, Partition: part.Partition, Key: []byte(w), Value: binary.BigEndian.AppendUint64(nil, 102)}
	before, err := c.List(j.ctx, session.End, []session.TopicPartition{part})
	if err == nil {
		err = owner.Send(j.ctx, &row, nil)
	}
	for end := before; err == nil && end[part] == before[part]; end, err = c.List(j.ctx, session.End, []session.TopicPartition{part}) {
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := j.options(t.TempDir())
	// It takes longer than a transaction may: none is open meanwhile.
	o.Workers, o.TransactionTimeout = 1, time.Second
	at := states(&o)
	j.send(words)
	r = j.start(o)
	j.waitFor(at, runtime.Restoring)
	select {
	case s := <-at:
		t.Errorf("%s before the changelog was decided", s)
	case <-time.After(1500 * time.Millisecond):
	}
	if err := owner.Commit(j.ctx, nil, session.Generation{}); err != nil {
		t.Fatal(err)
	}
	j.await(r)
	j.finish(r)
	highest := uint64(0)
	for _, rs := range j.read(changelog, nil) {
		for _, rec := range rs {
			if string(rec.Key) == w {
				highest = max(highest, binary.BigEndian.Uint64(rec.Value))
			}
		}
	}
	if highest != 103 {
		t.Errorf("%s was counted to %d, want 103: its events before, one after", w, highest)
	}
	if err := owner.Close(j.ctx); err != nil {
		t.Fatal(err)
	}
}

// A worker that commits, hears of a rebalance and then comes too late for it:
// others have had its tasks in between, so what it remembers of them is
// outdated, even if it gets the very same ones back.
func TestTasksAreNotKeptOverAMissedGeneration(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	j.send(300)
	late := j.options(t.TempDir())
	late.Workers, late.InstanceID = 1, "late"
	var joins atomic.Int64
	reached, goOn := make(chan struct{}), make(chan struct{})
	late.OnState = func(_ int, s runtime.State) {
		if s == runtime.Joining && joins.Add(1) == 2 {
			close(reached)
			<-goOn
		}
	}
	a := j.start(late)
	j.await(a)
	o := j.options(t.TempDir())
	o.Workers, o.Leave = 1, true
	b := j.start(o)
	<-reached
	j.expel("late-0")
	j.send(300)
	j.await(a, b)
	j.finish(b)
	close(goOn)
	j.send(300)
	j.await(a)
	j.finish(a)
	j.check()
	j.checkStores(late.StateDir)
}

// A commit that fails takes everything with it: what the tasks have read,
// counted and sent since the one before is read, counted and sent again.
func TestTasksAreNotKeptAfterAFailure(t *testing.T) {
	t.Parallel()
	for _, at := range []session.Step{runtime.StepLog, session.StepFlush, session.StepOffsets, session.StepEnd} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			j := newJob(t, time.Minute)
			j.label()
			c, err := session.Connect(j.ctx, session.ClusterOptions{Seeds: j.cluster.Seeds(), Dial: j.cluster.Dial})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			o := j.options(t.TempDir())
			o.Workers, o.InstanceID = 1, "failing"
			var n atomic.Int64
			o.OnStep = func(_ int, s session.Step) error {
				if s != at || n.Add(1)%3 != 0 || n.Load() > 12 {
					return nil
				}
				// Somebody takes the transactional id, which ends the open
				// transaction, and is gone again.
				p, err := c.NewProducer(j.ctx, session.ProducerOptions{TransactionalID: j.app + "-failing-0"})
				if err == nil {
					err = p.Close(j.ctx)
				}
				return err
			}
			r := j.start(o)
			for range 20 {
				j.send(40)
				j.await(r)
			}
			j.finish(r)
			if n.Load() < 12 {
				t.Errorf("only %d commits", n.Load())
			}
			j.check()
			j.checkStores(o.StateDir)
		})
	}
}

// A worker that slept wakes up, and the first thing it hears is that its next
// record is gone: a successor has consumed and purged it. That is no damage; it
// joins again.
func TestSleeperFindsItsInputPurged(t *testing.T) {
	t.Parallel()
	g := &gated{Cluster: brokers(t), open: make(chan struct{})}
	close(g.open)
	j := newJobOn(t, time.Minute, g.Cluster)
	j.label()
	j.send(100)
	o := j.options(t.TempDir())
	// The group's own word comes late.
	o.Workers, o.InstanceID, o.SessionTimeout, o.Heartbeat = 1, "sleeper", 30*time.Second, 10*time.Second
	at := states(&o)
	ctx, stop := context.WithCancel(j.ctx)
	sleeper := &running{stop: stop, done: make(chan error, 1)}
	go func() { sleeper.done <- runtime.Run(ctx, j.topology(), g, o) }()
	j.await(sleeper)

	shut := make(chan struct{})
	g.shut(shut)
	time.Sleep(300 * time.Millisecond) // until the fetch on its way is answered, with nothing
	ends := j.bounds(session.End)
	j.expel("sleeper-0")
	j.send(200)
	o = j.options(t.TempDir())
	o.Workers, o.PurgeInterval, o.Leave = 1, 10*time.Millisecond, true
	successor := j.start(o)
	j.await(successor)
	for purged := 0; purged < partitions; {
		j.send(20) // purges come with commits
		j.await(successor)
		purged = 0
		for part, start := range j.bounds(session.Start) {
			if start > ends[part] {
				purged++
			}
		}
	}
	j.waitFor(at, runtime.Running)
	close(shut)
	j.waitFor(at, runtime.Running)
	j.finish(successor)
	j.send(200)
	j.await(sleeper)
	j.finish(sleeper)
	j.check()
}

// bounds is one end of each partition of the repartition topic.
func (j *job) bounds(b session.Bound) map[session.TopicPartition]int64 {
	j.t.Helper()
	c, err := session.Connect(j.ctx, session.ClusterOptions{Seeds: j.cluster.Seeds(), Dial: j.cluster.Dial})
	if err != nil {
		j.t.Fatal(err)
	}
	defer c.Close()
	var parts []session.TopicPartition
	for p := range int32(partitions) {
		parts = append(parts, session.TopicPartition{Topic: topology.InternalName(j.app, "words", topology.Repartition), Partition: p})
	}
	found, err := c.List(j.ctx, b, parts)
	if err != nil {
		j.t.Fatal(err)
	}
	return found
}

// gated is a cluster whose answers wait while the gate is shut.
type gated struct {
	runtime.Cluster
	mu   sync.Mutex
	open chan struct{} // closed while open
}

func (g *gated) shut(until chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = until
}

func (g *gated) gate() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

func (g *gated) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := g.Cluster.Dial(ctx, network, addr)
	return &gatedConn{c, g}, err
}

type gatedConn struct {
	net.Conn
	g *gated
}

func (c *gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	<-c.g.gate()
	return n, err
}

// All inputs of a task that have moved commit together, in every commit: a crash
// after one in which two had moved repeats neither.
func TestAllInputsCommitTogether(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	dir := t.TempDir()
	for round := range 4 {
		o := j.options(dir)
		o.Workers = 1
		var n atomic.Int64
		at := int64(3 + round)
		o.OnStep = func(_ int, s session.Step) error {
			if s == runtime.StepStored && n.Add(1) == at {
				return errTestCrash
			}
			return nil
		}
		r := j.start(o)
		for ended := false; !ended; {
			j.label() // the same again: the table's topic moves too
			j.send(40)
			select {
			case err := <-r.done:
				if ended = true; !errors.Is(err, errTestCrash) {
					t.Fatal(err)
				}
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	j.once(dir)
	j.check()
	j.checkStores(dir)
}
