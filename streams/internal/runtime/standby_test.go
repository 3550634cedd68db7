package runtime_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/partition"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// restores collects what a process tells of its restores.
type restores struct {
	mu     sync.Mutex
	copies map[string]int64 // what copies lack, by store and partition
	done   map[string]int64 // records read, of those that are complete
}

func watch(o *runtime.Options) *restores {
	r := &restores{copies: map[string]int64{}, done: map[string]int64{}}
	o.OnRestore = func(x runtime.Restored) {
		r.mu.Lock()
		defer r.mu.Unlock()
		id := x.Store + x.Task
		switch {
		case x.Copy:
			r.copies[id] = x.Remaining
		case x.Done:
			r.done[id] = x.Records
		}
	}
	return r
}

// close reports that so many copies lack nothing.
func (r *restores) close(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, lag := range r.copies {
		if lag > 0 {
			return false
		}
	}
	return len(r.copies) >= n
}

// read is how many records the complete restores have read, and how many there were.
func (r *restores) read() (records int64, stores int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.done {
		records += n
	}
	return records, len(r.done)
}

func (j *job) until(what string, done func() bool) {
	j.t.Helper()
	for !done() {
		select {
		case <-j.ctx.Done():
			j.t.Fatalf("never: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A process that dies is followed by the one that has copies of its stores: hardly
// anything is left to restore, whichever process it is.
func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	j.send(2000)
	options := func(name string) (runtime.Options, *restores) {
		o := j.options(t.TempDir())
		o.InstanceID, o.Workers, o.Standbys = name, 1, 1
		r := watch(&o)
		return o, r
	}
	var crash atomic.Bool
	first, _ := options("first")
	first.OnStep = func(int, session.Step) error {
		if crash.Load() {
			return errTestCrash
		}
		return nil
	}
	second, seen := options("second")
	a := j.start(first)
	j.await(a)
	b := j.start(second)
	j.until("copies of half of the stores", func() bool { return seen.close(4) })
	crash.Store(true)
	if err := j.feedUntilEnd(a); !errors.Is(err, errTestCrash) {
		t.Fatal(err)
	}
	before, _ := seen.read()
	j.expel("first-0")
	j.await(b)
	after, stores := seen.read()
	if stores < 8 {
		t.Errorf("%d stores are complete, want all 8", stores)
	}
	// Tasks that it had from the start, and those it took over: each count was
	// written at most once per commit and word, a restore from nothing would read
	// hundreds of records.
	if after-before > 400 {
		t.Errorf("%d records were read to take over", after-before)
	}
	j.finish(b)
	j.check()
	j.checkStores(first.StateDir)
	j.checkStores(second.StateDir)
}

// Pitfall 17 (KAFKA-6634, KAFKA-13295): while one task restores for longer than a
// transaction may last, the others of its worker go on, and commit.
func TestPitfall17TasksGoOnBesideALongRestore(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	j.send(words * 2)
	r := j.start(j.options(t.TempDir()))
	j.await(r)
	j.finish(r)
	before := j.results()

	// A former owner has left something undecided in one partition: its restore
	// cannot end.
	changelog := topology.InternalName(j.app, "counts", topology.Changelog)
	c, err := session.Connect(j.ctx, session.ClusterOptions{Seeds: j.cluster.Seeds(), Dial: j.cluster.Dial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	owner, err := c.NewProducer(j.ctx, session.ProducerOptions{TransactionalID: j.app + "-former", Timeout: 40 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	part := session.TopicPartition{Topic: changelog, Partition: partition.ForKey([]byte(word(0)), partitions)}
	ends := func() int64 {
		found, err := c.List(j.ctx, session.End, []session.TopicPartition{part})
		if err != nil {
			t.Fatal(err)
		}
		return found[part]
	}
	end := ends()
	row := session.Record{Topic: changelog, Partition: part.Partition, Key: []byte("nothing")}
	if err := owner.Send(j.ctx, &row, nil); err != nil {
		t.Fatal(err)
	}
	j.until("the record is written", func() bool { return ends() > end })
	o := j.options(t.TempDir())
	o.Workers, o.TransactionTimeout = 1, time.Second
	at := states(&o)
	j.send(words * 4)
	r = j.start(o)
	j.waitFor(at, runtime.Restoring)
	// The events of three partitions out of four are counted meanwhile, those that
	// come later too.
	others := 0
	for i := range words * 4 {
		if partition.ForKey([]byte(word(i)), partitions) != part.Partition {
			others++
		}
	}
	j.until("the other tasks have counted", func() bool { return j.results()-before >= others })
	started := time.Now()
	for time.Since(started) < 1500*time.Millisecond {
		j.send(words)
		want := 0
		for i := range words {
			if partition.ForKey([]byte(word(i)), partitions) != part.Partition {
				want++
			}
		}
		others += want
		j.until("the other tasks go on", func() bool { return j.results()-before >= others })
	}
	select {
	case s := <-at:
		t.Errorf("%s while a changelog is undecided", s)
	default:
	}
	if err := owner.Commit(j.ctx, nil, session.Generation{}); err != nil {
		t.Fatal(err)
	}
	j.await(r)
	j.finish(r)
	j.check()
	if err := owner.Close(j.ctx); err != nil {
		t.Fatal(err)
	}
}

// Pitfall 8 (KAFKA-5998): only the stores that move are restored, however many tasks a
// worker has.
func TestPitfall08OnlyWhatMovesIsRestored(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	j.send(400)
	a, b := j.options(t.TempDir()), j.options(t.TempDir())
	a.Workers, b.Workers, a.Leave, b.Leave = 1, 1, true, true
	seenA, seenB := watch(&a), watch(&b)
	one := j.start(a)
	j.await(one)
	_, stores := seenA.read()
	two := j.start(b)
	j.until("the second has its share", func() bool { _, n := seenB.read(); return n == 4 })
	j.send(400)
	j.await(one, two)
	if _, n := seenA.read(); n != stores {
		t.Errorf("the first process restored %d stores once more", n-stores)
	}
	j.finish(two)
	j.send(400)
	j.await(one)
	j.finish(one)
	j.check()
	j.checkStores(a.StateDir)
	j.checkStores(b.StateDir)
}

// Pitfall 11 (KAFKA-14302): a changelog partition that retention or somebody has
// emptied does not keep a restore waiting, in a new folder or one that has a store.
func TestPitfall11EmptiedChangelog(t *testing.T) {
	t.Parallel()
	for _, fresh := range []bool{true, false} {
		j := newJob(t, time.Minute)
		dir := t.TempDir()
		j.label()
		j.send(200)
		j.once(dir)
		changelog := topology.InternalName(j.app, "counts", topology.Changelog)
		j.configure(changelog, "cleanup.policy", "compact,delete") // or nobody may delete
		req := kmsg.NewPtrDeleteRecordsRequest()
		rt := kmsg.NewDeleteRecordsRequestTopic()
		rt.Topic, req.TimeoutMillis = changelog, 10_000
		for p := range int32(partitions) {
			rp := kmsg.NewDeleteRecordsRequestTopicPartition()
			rp.Partition, rp.Offset = p, -1
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
		resp, err := req.RequestWith(j.ctx, j.admin)
		if err != nil {
			t.Fatal(err)
		}
		for _, rp := range resp.Topics[0].Partitions {
			if err := kerr.ErrorForCode(rp.ErrorCode); err != nil {
				t.Fatal(err)
			}
		}
		if fresh {
			dir = t.TempDir()
		}
		j.send(200)
		r := j.start(j.options(dir))
		j.await(r)
		j.finish(r)
		// What was kept is gone with the log, here too: a store may not hold what its
		// changelog does not know.
		j.checkStores(dir)
	}
}

// configure sets one configuration of a topic.
func (j *job) configure(topic, name, value string) {
	j.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Value = name, &value
	r.Configs = append(r.Configs, c)
	req.Resources = append(req.Resources, r)
	resp, err := req.RequestWith(j.ctx, j.admin)
	if err == nil {
		err = kerr.ErrorForCode(resp.Resources[0].ErrorCode)
	}
	if err != nil {
		j.t.Fatal(err)
	}
}

// Pitfall 13 (KAFKA-15690, KAFKA-16077): members that come and go while stores are
// being restored end in no loop, and every task is somewhere.
func TestPitfall13MembersComeAndGoDuringRestores(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	for range 10 {
		j.send(500)
		if j.sent == 500 {
			j.once(t.TempDir())
		}
	}
	o := j.options("")
	o.Workers, o.Standbys = 2, 1
	first := j.start(o)
	for range 6 {
		o := j.options("") // each start restores everything it is given
		o.Workers, o.Standbys = 1, 1
		other := j.start(o)
		j.send(100)
		select {
		case err := <-first.done:
			t.Fatal(err)
		case <-time.After(150 * time.Millisecond):
		}
		j.finish(other)
	}
	j.await(first)
	j.finish(first)
	j.check()
}
