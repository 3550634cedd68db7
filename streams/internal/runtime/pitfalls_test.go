package runtime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/partition"
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/txn/session"
)

// Tests by the number of a list of what has gone wrong in stream processing elsewhere;
// each names where.

// meddle starts the job with a hook in its traffic.
func (j *job) meddle(m *meddler, o runtime.Options) *runtime.Job {
	j.t.Helper()
	m.Cluster = j.cluster
	r, err := runtime.Start(j.ctx, j.topology(), m, o)
	j.must(err)
	return r
}

// TestPitfall15: repartition topics are purged behind the commit, neither never nor in
// a storm of requests, and a topic that is empty for that reason troubles nobody who
// goes on writing to it (KAFKA-13549, KAFKA-19539, KAFKA-7190).
func TestPitfall15RepartitionTopicsArePurgedCalmly(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	var purges atomic.Int64
	o := j.options(t.TempDir())
	o.PurgeInterval = 200 * time.Millisecond
	began := time.Now()
	r := j.meddle(&meddler{request: func(key kmsg.Key) {
		if key == kmsg.DeleteRecords {
			purges.Add(1)
		}
	}}, o)
	for purged := 0; purged < partitions; {
		j.send(40)
		j.counts(r)
		purged = 0
		ends := j.bounds(session.End)
		for part, start := range j.bounds(session.Start) {
			if start > ends[part]/2 && start > 100 {
				purged++
			}
		}
	}
	j.send(200)
	j.counts(r)
	if most := int64(o.Workers) * (int64(time.Since(began)/o.PurgeInterval) + 1); purges.Load() > most || purges.Load() == 0 {
		t.Errorf("%d purges in %v", purges.Load(), time.Since(began))
	}
	j.must(r.Close(j.ctx, runtime.AsOptions))
	j.check()
}

// TestPitfall16: an answer to a commit that is lost says nothing about its outcome
// (KAFKA-9274).
func TestPitfall16LostAnswersToCommits(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	var ends, lost atomic.Int64
	o := j.options(t.TempDir())
	r := j.meddle(&meddler{answer: func(resp kmsg.Response) error {
		if _, ok := resp.(*kmsg.EndTxnResponse); ok && ends.Add(1)%3 == 0 {
			lost.Add(1)
			return errors.New("lost")
		}
		return nil
	}}, o)
	for lost.Load() < 12 {
		j.send(40)
		j.counts(r)
	}
	j.must(r.Close(j.ctx, runtime.AsOptions))
	j.check()
	j.checkStores(o.StateDir)
}

// TestPitfall17: a restore that takes longer than a transaction may neither stops the
// tasks that are ready nor makes their transactions expire (KAFKA-6634, KAFKA-13295,
// KAFKA-19853).
func TestPitfall17LongRestoreBesideABusyTask(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	j.send(words * 2)
	first := j.open(j.options(t.TempDir()))
	j.counts(first)
	j.must(first.Close(j.ctx, runtime.LeaveGroup))
	// Something undecided lies in the changelog of one task: its restore waits.
	w := word(0)
	stuck := session.TopicPartition{Topic: topology.InternalName(j.app, "counts", topology.Changelog), Partition: partition.ForKey([]byte(w), partitions)}
	c, err := session.Connect(j.ctx, session.ClusterOptions{Seeds: j.cluster.Seeds(), Dial: j.cluster.Dial})
	j.must(err)
	defer c.Close()
	owner, err := c.NewProducer(j.ctx, session.ProducerOptions{TransactionalID: j.app + "-former", Timeout: 50 * time.Second})
	j.must(err)
	row := session.Record{Topic: stuck.Topic, Partition: stuck.Partition, Key: []byte(w), Value: binary.BigEndian.AppendUint64(nil, 102)}
	before, err := c.List(j.ctx, session.End, []session.TopicPartition{stuck})
	for end := before; err == nil && end[stuck] == before[stuck]; end, err = c.List(j.ctx, session.End, []session.TopicPartition{stuck}) {
		if err = owner.Send(j.ctx, &row, nil); err == nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
	j.must(err)
	log := &heard{}
	o := j.options(t.TempDir())
	o.Workers, o.TransactionTimeout, o.Logger = 1, time.Second, slog.New(log)
	r := j.open(o)
	began := j.results()
	for j.results() == began {
		j.send(words)
		time.Sleep(20 * time.Millisecond)
		j.must(j.ctx.Err())
	}
	began = j.results()
	// The others are counted all the while, for much longer than a transaction may take.
	for until := time.Now().Add(2500 * time.Millisecond); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		j.send(words)
	}
	if n := j.results() - began; n < words {
		t.Errorf("%d results while one task restores", n)
	}
	if s, _ := r.State(); s != runtime.JobRebalancing {
		t.Errorf("it is %s, although a task restores", s)
	}
	j.must(owner.Commit(j.ctx, nil, session.Generation{}))
	j.must(owner.Close(j.ctx))
	j.counts(r)
	j.must(r.Close(j.ctx, runtime.AsOptions))
	if n := log.count("starting over"); n > 0 {
		t.Errorf("it started over %d times", n)
	}
	highest, _ := j.counted()
	j.want[w] += 100
	for w, n := range j.want {
		if highest[w] != n {
			t.Errorf("%s was counted to %d, want %d", w, highest[w], n)
		}
	}
}

// heard keeps the messages of a log.
type heard struct {
	mu   sync.Mutex
	said []string
}

func (h *heard) Enabled(context.Context, slog.Level) bool { return true }
func (h *heard) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *heard) WithGroup(string) slog.Handler            { return h }
func (h *heard) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, r.Message)
	return nil
}

func (h *heard) count(text string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.said {
		if strings.Contains(s, text) {
			n++
		}
	}
	return n
}

// TestPitfall19: all tasks of a producer commit together. When one fails, no offset of
// another is ahead of its output, or behind it (KAFKA-14847).
func TestPitfall19TasksOfAProducerCommitTogether(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	app := j.distinct(false)
	make := app.Subs[0].New
	app.Subs[0].New = func(e task.Env) (task.Task, error) {
		t, err := make(e)
		return &failing{t}, err
	}
	send := func(from, to int, poison bool) {
		var rs []*kgo.Record
		for i := from; i < to; i++ {
			v := fmt.Sprint(i)
			if poison && i == (from+to)/2 {
				v = "poison"
			}
			rs = append(rs, &kgo.Record{Topic: j.events, Partition: int32(i % partitions), Value: []byte(v)})
		}
		j.produce(rs)
	}
	send(0, 1000, false)
	o := j.options(t.TempDir())
	o.Workers, o.CommitInterval = 1, 2*time.Millisecond
	r := j.run(app, o)
	for j.results() < 500 {
		time.Sleep(5 * time.Millisecond)
	}
	send(1000, 4000, true)
	if err := <-r.done; !errors.Is(err, errPoison) {
		t.Fatal(err)
	}
	c, err := session.Connect(j.ctx, session.ClusterOptions{Seeds: j.cluster.Seeds(), Dial: j.cluster.Dial})
	j.must(err)
	defer c.Close()
	var parts []session.TopicPartition
	for p := range int32(partitions) {
		parts = append(parts, session.TopicPartition{Topic: j.events, Partition: p})
	}
	at, err := c.CommittedOffsets(j.ctx, j.app, parts)
	j.must(err)
	out, committed := j.read(j.out, nil), int64(0)
	for _, part := range parts {
		next := max(at[part].Next, 0)
		committed += next
		if n := int64(len(out[part.Partition])); n != next {
			t.Errorf("partition %d: %d records are out, the offset says %d", part.Partition, n, next)
		}
	}
	if committed == 0 || committed >= 4000 {
		t.Errorf("%d records were committed: the test shows nothing", committed)
	}
}

var errPoison = errors.New("poison")

type failing struct{ task.Task }

func (f *failing) Process(r *task.Record) error {
	if string(r.Value) == "poison" {
		return errPoison
	}
	return f.Task.Process(r)
}

// TestPitfall20: whatever code says that somebody else has taken over, in whatever
// answer, the application recovers, and nothing counts twice (KAFKA-10813, KAFKA-10631,
// KAFKA-16699, KAFKA-15429). The broker has done what was asked; only the answer is
// another one.
func TestPitfall20EveryCodeInEveryAnswer(t *testing.T) {
	t.Parallel()
	j := newJob(t, 2*time.Minute)
	j.label()
	codes := map[kmsg.Key][]*kerr.Error{
		kmsg.EndTxn: {
			kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.TransactionCoordinatorFenced, kerr.InvalidTxnState, kerr.InvalidProducerIDMapping,
			kerr.ConcurrentTransactions, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.TransactionAbortable,
			kerr.UnknownServerError,
		},
		kmsg.TxnOffsetCommit: {
			kerr.InvalidProducerEpoch, kerr.ProducerFenced, kerr.TransactionCoordinatorFenced, kerr.IllegalGeneration, kerr.UnknownMemberID,
			kerr.RebalanceInProgress, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.TransactionAbortable,
			kerr.InvalidTxnState, kerr.UnstableOffsetCommit,
		},
		kmsg.Produce: {
			kerr.InvalidProducerEpoch, kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidTxnState, kerr.TransactionAbortable,
			kerr.NotLeaderForPartition, kerr.InvalidProducerIDMapping,
		},
		kmsg.InitProducerID: {kerr.ConcurrentTransactions, kerr.CoordinatorLoadInProgress, kerr.NotCoordinator},
		kmsg.Heartbeat:      {kerr.RebalanceInProgress, kerr.IllegalGeneration, kerr.UnknownMemberID, kerr.NotCoordinator},
	}
	var next atomic.Pointer[injection]
	var story []string
	o := j.options(t.TempDir())
	r := j.meddle(&meddler{answer: func(resp kmsg.Response) error {
		if in := next.Load(); in != nil && int16(in.key) == resp.Key() && in.into(resp) {
			next.CompareAndSwap(in, nil)
		}
		return nil
	}}, o)
	for _, key := range []kmsg.Key{kmsg.EndTxn, kmsg.TxnOffsetCommit, kmsg.Produce, kmsg.Heartbeat, kmsg.InitProducerID} {
		for _, code := range codes[key] {
			in := &injection{key, code.Code}
			next.Store(in)
			story = append(story, fmt.Sprintf("%s into %s", code.Message, key.Name()))
			for next.Load() == in {
				j.send(20)
				j.countsOrTell(r, story)
				if key == kmsg.InitProducerID { // which comes after a failure only
					next.Store(&injection{kmsg.EndTxn, kerr.InvalidProducerEpoch.Code})
					for next.Load() != nil {
						j.send(20)
						j.countsOrTell(r, story)
					}
					break
				}
			}
			j.countsOrTell(r, story)
		}
	}
	j.must(r.Close(j.ctx, runtime.AsOptions))
	j.check()
	j.checkStores(o.StateDir)
}

func (j *job) countsOrTell(r *runtime.Job, story []string) {
	j.t.Helper()
	select {
	case <-r.Done():
		j.t.Fatalf("after %s the run ended: %v", story[len(story)-1], r.Wait())
	default:
	}
	j.counts(r)
}

// injection is a code to be put into the next answer of a kind.
type injection struct {
	key  kmsg.Key
	code int16
}

func (in *injection) into(resp kmsg.Response) bool {
	switch r := resp.(type) {
	case *kmsg.EndTxnResponse:
		r.ErrorCode = in.code
	case *kmsg.InitProducerIDResponse:
		r.ErrorCode = in.code
	case *kmsg.HeartbeatResponse:
		r.ErrorCode = in.code
	case *kmsg.TxnOffsetCommitResponse:
		for i := range r.Topics {
			for k := range r.Topics[i].Partitions {
				r.Topics[i].Partitions[k].ErrorCode = in.code
			}
		}
		return len(r.Topics) > 0
	case *kmsg.ProduceResponse:
		for i := range r.Topics {
			for k := range r.Topics[i].Partitions {
				r.Topics[i].Partitions[k].ErrorCode, r.Topics[i].Partitions[k].BaseOffset = in.code, -1
			}
		}
		return len(r.Topics) > 0
	}
	return true
}

// TestPitfall22: a request to append that arrives when its transaction has timed out
// belongs to no transaction: it is refused, does not join the next one, and leaves none
// open that readers would wait for (KAFKA-18957, KIP-890, franz-go 928).
func TestPitfall22LateAppendJoinsNothing(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	j.label()
	var appends, late atomic.Int64
	o := j.options(t.TempDir())
	o.Workers, o.TransactionTimeout = 1, time.Second
	r := j.meddle(&meddler{request: func(key kmsg.Key) {
		if key == kmsg.Produce && appends.Add(1)%7 == 0 && late.Add(1) <= 3 {
			time.Sleep(2500 * time.Millisecond)
		}
	}}, o)
	for late.Load() < 3 {
		j.send(60)
		j.counts(r)
	}
	j.must(r.Close(j.ctx, runtime.AsOptions))
	j.settled()
	j.check()
	j.checkStores(o.StateDir)
}

// settled waits until no transaction is open in any topic of the job.
func (j *job) settled() {
	j.t.Helper()
	c, err := session.Connect(j.ctx, session.ClusterOptions{Seeds: j.cluster.Seeds(), Dial: j.cluster.Dial})
	j.must(err)
	defer c.Close()
	var parts []session.TopicPartition
	for _, topic := range []string{j.out, topology.InternalName(j.app, "words", topology.Repartition), topology.InternalName(j.app, "counts", topology.Changelog)} {
		for p := range int32(partitions) {
			parts = append(parts, session.TopicPartition{Topic: topic, Partition: p})
		}
	}
	for {
		ends, err := c.List(j.ctx, session.End, parts)
		j.must(err)
		stable, err := c.List(j.ctx, session.StableEnd, parts)
		j.must(err)
		if !slices.ContainsFunc(parts, func(p session.TopicPartition) bool { return stable[p] < ends[p] }) {
			return
		}
		select {
		case <-j.ctx.Done():
			j.t.Fatalf("a transaction stays open: stable %v, ends %v", stable, ends)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestPitfall23: a process that dies with everything ready to commit and does not come
// back blocks readers no longer than its transaction may last, and what comes back
// later gives the exact result (FLINK-23854, FLINK-39218).
func TestPitfall23DeadBetweenPrepareAndCommit(t *testing.T) {
	t.Parallel()
	j := newJob(t, time.Minute)
	dir := t.TempDir()
	j.label()
	o := j.options(dir)
	o.TransactionTimeout = time.Second
	var n atomic.Int64
	crash := o
	crash.OnStep = func(_ int, s session.Step) error {
		if s == session.StepEnd && n.Add(1) == 4 {
			return errTestCrash
		}
		return nil
	}
	if err := j.feedUntilEnd(j.start(crash)); !errors.Is(err, errTestCrash) {
		t.Fatal(err)
	}
	j.settled() // nobody but the coordinator does it
	for _, dir := range []string{dir, t.TempDir()} {
		j.send(100)
		o.StateDir = dir
		o.Leave = true
		r := j.open(o)
		j.counts(r)
		j.must(r.Close(j.ctx, runtime.LeaveGroup))
	}
	j.check()
	j.checkStores(dir)
}

// TestPitfall37: an internal topic that was deleted while the application was down is
// an error, not a fresh start (KAFKA-10357), on the machine that has the state folder
// and on one that only knows the group's offsets.
func TestPitfall37DeletedInternalTopic(t *testing.T) {
	t.Parallel()
	cluster := brokers(t)
	for _, kind := range []topology.Kind{topology.Changelog, topology.Repartition} {
		for _, other := range []bool{false, true} {
			j := newJobOn(t, time.Minute, cluster)
			dir := t.TempDir()
			j.label()
			j.send(200)
			j.once(dir)
			name := topology.InternalName(j.app, map[topology.Kind]string{topology.Changelog: "counts", topology.Repartition: "words"}[kind], kind)
			req := kmsg.NewPtrDeleteTopicsRequest()
			rt := kmsg.NewDeleteTopicsRequestTopic()
			rt.Topic = kmsg.StringPtr(name)
			req.Topics, req.TopicNames, req.TimeoutMillis = append(req.Topics, rt), []string{name}, 10_000
			_, err := req.RequestWith(j.ctx, j.admin)
			j.must(err)
			if other {
				dir = t.TempDir()
			}
			err = runtime.Run(j.ctx, j.topology(), j.cluster, j.options(dir))
			if !errors.Is(err, runtime.ErrMissingTopic) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s, other folder %v: %v", kind, other, err)
			}
		}
	}
}
