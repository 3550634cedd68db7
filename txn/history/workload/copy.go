package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace/millrace/txn/history"
)

// Copy counts. Producers write 0, 1, 2, … to each partition of a topic, and the members
// of a group copy it to another topic in transactions, which they abort or die in at
// times. In the end both topics must hold the same numbers in the same order: none
// lost, none twice. Half of the clients are producers.
func Copy(ctx context.Context, o Options) (Outcome, error) {
	o, c := newCopying(o)
	return run(ctx, o, c)
}

func newCopying(o Options) (Options, *copying) {
	o.Topics = 2
	o = o.withDefaults()
	o.Clients = max(o.Clients, 2)
	c := &copying{sent: make([]atomic.Int64, o.Partitions), producing: (o.Clients + 1) / 2, got: map[history.Key][]int64{}, outputs: identical}
	c.producers.Add(c.producing)
	return o, c
}

// identical is what a copy writes.
func identical(_ context.Context, _ *field, records []*kgo.Record) ([]*kgo.Record, error) {
	var out []*kgo.Record
	for _, r := range records {
		out = append(out, &kgo.Record{Partition: r.Partition, Value: r.Value})
	}
	return out, nil
}

type copying struct {
	// outputs makes what a transaction writes of what it reads.
	outputs func(ctx context.Context, f *field, records []*kgo.Record) ([]*kgo.Record, error)

	producing int            // clients of which the first so many are producers
	producers sync.WaitGroup // those that are not done
	sent      []atomic.Int64 // by partition: acknowledged
	written   atomic.Int64   // the sum of sent
	copied    atomic.Int64   // records, in transactions that were confirmed
	commits   atomic.Int64
	aborts    atomic.Int64
	deaths    atomic.Int64
	got       map[history.Key][]int64 // what the reading at the end finds
}

func (c *copying) work(f *field, worker int, stop <-chan struct{}) error {
	if worker < c.producing {
		defer c.producers.Done()
		return c.produce(f, worker, stop)
	}
	done := make(chan struct{})
	go func() {
		c.producers.Wait()
		close(done)
	}()
	w := &copier{copying: c, field: f, number: worker, rng: rand.New(rand.NewPCG(f.options.Seed, 1<<33+uint64(worker)))}
	return w.work(stop, done)
}

// produce writes to the partitions that are this producer's. The client asks again
// until it is answered, so that every number is acknowledged in the end.
func (c *copying) produce(f *field, worker int, stop <-chan struct{}) error {
	cl, err := kgo.NewClient(append(f.connect(), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(f.topics[0]), kgo.ProducerLinger(0))...)
	if err != nil {
		return fmt.Errorf("workload: client %d: %w", worker, err)
	}
	defer cl.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // what is not acknowledged long after the end never will be
		select {
		case <-stop:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(f.options.Patience):
			cancel()
		case <-ctx.Done():
		}
	}()
	for n := int64(0); !over(stop); n++ {
		if !c.room(stop) {
			return nil
		}
		var batch []*kgo.Record
		for p := worker; p < len(c.sent); p += c.producing {
			batch = append(batch, &kgo.Record{Partition: int32(p), Value: strconv.AppendInt(nil, n, 10)})
		}
		if len(batch) == 0 {
			return nil // more producers than partitions
		}
		if err := cl.ProduceSync(ctx, batch...).FirstErr(); err != nil {
			return fmt.Errorf("producer %d: %w", worker, err)
		}
		for _, r := range batch {
			c.sent[r.Partition].Store(n + 1)
		}
		c.written.Add(int64(len(batch)))
		f.done(history.OK)
	}
	return nil
}

// maxBehind is how many records the copiers may be behind the producers, who else
// would write more in a disturbance than can be copied in the time after it.
const maxBehind = 2000

// room waits until the copiers are not too far behind, or says that it is over.
func (c *copying) room(stop <-chan struct{}) bool {
	for c.written.Load()-c.copied.Load() > maxBehind {
		select {
		case <-stop:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return true
}

// copier is a member of the group.
type copier struct {
	*copying
	*field
	number  int
	rng     *rand.Rand
	session *kgo.GroupTransactSession
	cancel  context.CancelFunc
}

func (w *copier) open() error {
	ctx, cancel := context.WithCancel(context.Background())
	opts := append(w.connect(), kgo.WithContext(ctx), kgo.TransactionalID(fmt.Sprintf("%s-x%d", w.name, w.number)), kgo.FetchMaxWait(250*time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumerGroup(w.groups[0]), kgo.ConsumeTopics(w.topics[0]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.SessionTimeout(sessionTimeout), kgo.RebalanceTimeout(10*time.Second), kgo.HeartbeatInterval(100*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(w.topics[1]), kgo.ProducerLinger(0))
	kind := flavourOf(w.number)
	if kind.version1 && !w.options.OnlyVersion2 {
		opts = append(opts, kgo.MaxVersions(kversion.FromString("v3.9")))
	}
	if kind.static {
		opts = append(opts, kgo.InstanceID(strconv.Itoa(w.number)))
	}
	var err error
	if w.session, err = kgo.NewGroupTransactSession(opts...); err != nil {
		cancel()
		return fmt.Errorf("workload: copier %d: %w", w.number, err)
	}
	w.cancel = cancel
	return nil
}

// close ends the member; a dead one says nothing to its group.
func (w *copier) close(dead bool) {
	if dead {
		w.cancel()
	}
	w.session.Close()
	w.cancel()
	w.session = nil
}

// work copies until the producers are done and the group has committed everything.
func (w *copier) work(stop, produced <-chan struct{}) error {
	var limit time.Time
	for {
		if w.session == nil {
			if err := w.open(); err != nil {
				return err
			}
		}
		if over(stop) && limit.IsZero() {
			limit = time.Now().Add(w.options.Patience)
		}
		if !limit.IsZero() && time.Now().After(limit) {
			w.close(true)
			return fmt.Errorf("copier %d: the group has not copied everything within %v", w.number, w.options.Patience)
		}
		err := w.once(stop)
		switch {
		case err != nil:
			w.done(history.Info)
			w.close(false)
		case over(produced) && w.caughtUp():
			w.close(false)
			return nil
		case !over(stop) && w.rng.IntN(oneCrash) == 0:
			w.deaths.Add(1)
			w.close(true)
		}
	}
}

// once copies what a poll returns, in one transaction.
func (w *copier) once(stop <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	wait, cancelWait := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancelWait()
	records := w.session.PollRecords(wait, 1+w.rng.IntN(100)).Records()
	if len(records) == 0 {
		return nil
	}
	if err := w.session.Begin(); err != nil {
		return err
	}
	out, err := w.outputs(ctx, w.field, records)
	if err != nil {
		return err
	}
	for _, r := range out {
		w.session.Produce(ctx, r, nil) // a failed one fails the commit
	}
	try := kgo.TransactionEndTry(over(stop) || w.rng.IntN(oneAbort) > 0)
	committed, err := w.session.End(ctx, try)
	switch {
	case err != nil:
		return err
	case committed:
		w.commits.Add(1)
		w.copied.Add(int64(len(records)))
		w.done(history.OK)
	default:
		w.aborts.Add(1)
		w.done(history.Fail)
	}
	return nil
}

// caughtUp says whether the group has committed everything that was acknowledged.
func (w *copier) caughtUp() bool {
	ctx, cancel := context.WithTimeout(kadm.RequireStable(context.Background()), patience)
	defer cancel()
	found, err := w.admin.FetchOffsets(ctx, w.groups[0])
	if err != nil {
		return false
	}
	for p := range w.sent {
		at, known := found.Lookup(w.topics[0], int32(p))
		if n := w.sent[p].Load(); n > 0 && (!known || at.Err != nil || at.At < n) {
			return false
		}
	}
	return true
}

func (c *copying) record(r *kgo.Record) {
	n, err := strconv.ParseInt(string(r.Value), 10, 64)
	if err != nil {
		n = -1
	}
	k := history.Key{Topic: r.Topic, Partition: r.Partition}
	c.got[k] = append(c.got[k], n)
}

func (c *copying) judge(o *Outcome) {
	var numbers int64
	for p := range c.sent {
		numbers += c.sent[p].Load()
	}
	copied := 0
	for k, got := range c.got {
		want := c.sent[k.Partition].Load()
		for i, n := range got {
			if n != int64(i) {
				o.find("%v has %d in the place of %d: lost, doubled or out of order", k, n, i)
				break
			}
		}
		if int64(len(got)) != want {
			o.find("%v has %d records, %d were acknowledged", k, len(got), want)
		}
		copied += len(got)
	}
	if int64(copied) != 2*numbers {
		o.find("%d records are in both topics together, it must be twice %d", copied, numbers)
	}
	if c.commits.Load() == 0 {
		o.find("nothing was copied")
	}
	o.Summary = fmt.Sprintf("copy: %d records copied in %d transactions, %d aborted, copiers died %d times", numbers, c.commits.Load(), c.aborts.Load(), c.deaths.Load())
}
