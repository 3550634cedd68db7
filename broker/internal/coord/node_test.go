package coord

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/coordinator"
)

const dataPartitions = 5

// node is a transaction coordinator with real partitions on a memory disk: two of
// __transaction_state, one of __consumer_offsets under a runtime of its own, and five
// data partitions of topic t.
type node struct {
	t       testing.TB
	fs      vfs.FS
	clock   clock.Clock
	flusher *flush.Flusher
	parts   map[string]*partition.Partition
	groups  *Runtime[*words]
	txns    *Transactions
	pids    *atomic.Int64 // survives restarts, as the metadata log does

	mu   sync.Mutex
	data func(topic string, index int32) error // fault of a data partition, nil for none
}

func newNode(t testing.TB, fs vfs.FS, c clock.Clock, pids *atomic.Int64) *node {
	t.Helper()
	n := &node{t: t, fs: fs, clock: c, parts: map[string]*partition.Partition{}, pids: pids}
	var err error
	if err = errors.Join(fs.MkdirAll("data"), fs.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	if n.flusher, err = flush.New(flush.Options{FS: fs, Dir: "data", Clock: c}); err != nil {
		t.Fatal(err)
	}
	n.open(TxnTopic, 2, 1)
	n.open(GroupTopic, 1, 2)
	n.open("t", dataPartitions, 3)
	if n.groups, err = NewRuntime(Options[*words]{
		Topic: GroupTopic, Partitions: 1, Clock: c,
		Open: func(i int32) (Log, error) { return n.part(GroupTopic, i), nil },
		New:  func(int32) *words { return &words{} },
	}); err != nil {
		t.Fatal(err)
	}
	n.txns, err = NewTransactions(TransactionsOptions{
		Partitions: 2, Clock: c, Groups: n.groups,
		Open:        func(i int32) (Log, error) { return n.part(TxnTopic, i), nil },
		Data:        n.lookUp,
		ProducerIDs: func() (int64, error) { return pids.Add(1), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	n.groups.Start()
	n.txns.Start()
	return n
}

func (n *node) open(topic string, count int, id byte) {
	n.t.Helper()
	for i := range count {
		name := fmt.Sprintf("%s-%d", topic, i)
		p, err := partition.Open(partition.Options{
			FS: n.fs, Dir: filepath.Join("data", name), Topic: topic, TopicID: [16]byte{id}, Index: int32(i), Flusher: n.flusher, Clock: n.clock,
		})
		if err != nil {
			n.t.Fatal(err)
		}
		n.parts[name] = p
	}
}

func (n *node) part(topic string, i int32) *partition.Partition {
	return n.parts[fmt.Sprintf("%s-%d", topic, i)]
}

func (n *node) lookUp(topic string, i int32) (MarkerLog, error) {
	n.mu.Lock()
	fault := n.data
	n.mu.Unlock()
	if fault != nil {
		if err := fault(topic, i); err != nil {
			return nil, err
		}
	}
	p := n.part(topic, i)
	if p == nil {
		return nil, fmt.Errorf("%w: %s-%d", ErrNoPartition, topic, i)
	}
	return p, nil
}

func (n *node) breakData(fault func(topic string, i int32) error) {
	n.mu.Lock()
	n.data = fault
	n.mu.Unlock()
}

// close is a clean stop.
func (n *node) close() {
	n.txns.Close()
	n.groups.Close()
	var errs []error
	for _, p := range n.parts {
		errs = append(errs, p.Close())
	}
	if err := errors.Join(append(errs, n.flusher.Close())...); err != nil {
		n.t.Error(err)
	}
}

// client is a producer of transaction version 2 or 1 with a transactional id.
type client struct {
	n       *node
	id      string
	version int16 // of EndTxn: 5 or 4
	pid     int64
	epoch   int16
	seq     map[int32]int32
}

func (n *node) client(id string, version int16) *client {
	return &client{n: n, id: id, version: version, pid: -1, epoch: -1, seq: map[int32]int32{}}
}

// retriable says that a client would ask again.
func retriable(code int16) bool {
	return code == CodeCoordinatorLoading || code == CodeCoordinatorNotAvailable || code == coordinator.CodeConcurrentTransactions
}

// init takes the id over, whatever it needs.
func (c *client) init() *client {
	c.n.t.Helper()
	for {
		ch := make(chan coordinator.InitReply, 1)
		c.n.txns.InitProducerID(coordinator.InitRequest{ID: c.id, ProducerID: -1, Epoch: -1, TimeoutMs: 60000, Version: 5},
			func(r coordinator.InitReply) { ch <- r })
		r := <-ch
		if r.Code == 0 {
			c.pid, c.epoch, c.seq = r.ProducerID, r.Epoch, map[int32]int32{}
			return c
		}
		if !retriable(r.Code) {
			c.n.t.Fatalf("init of %s: code %d", c.id, r.Code)
		}
	}
}

// add is the explicit AddPartitionsToTxn of version 1.
func (c *client) add(tps ...TopicPartition) int16 {
	ch := make(chan []int16, 1)
	c.n.txns.Add(coordinator.AddRequest{ID: c.id, ProducerID: c.pid, Epoch: c.epoch, Partitions: tps, Version: 3},
		func(codes []int16) { ch <- codes })
	return (<-ch)[0]
}

// produce does what a Produce request does for one record on one partition.
func (c *client) produce(i int32, value string) int16 {
	p := c.n.part("t", i)
	var b record.Builder
	b.Reset(record.BuilderOptions{Producer: &record.Producer{ID: c.pid, Epoch: c.epoch, Sequence: c.seq[i]}, Transactional: true})
	b.Append(c.n.clock.Now().UnixMilli(), []byte("k"), []byte(value), nil)
	batch, err := b.Batch()
	if err != nil {
		c.n.t.Fatal(err)
	}
	o := partition.AppendOptions{RequestVersion: 12}
	if !p.TxnOpen(c.pid, c.epoch) {
		o.Guard = p.BeginVerify(c.pid, c.epoch, c.seq[i])
		ch := make(chan []int16, 1)
		c.n.txns.AddPartitions(c.id, c.pid, c.epoch, []TopicPartition{{Topic: "t", Partition: i}}, c.version < 5, func(codes []int16) { ch <- codes })
		if code := (<-ch)[0]; code != 0 {
			return code
		}
	}
	a, err := p.Append(batch, o)
	if err != nil {
		var coded interface{ ErrorCode() int16 }
		if errors.As(err, &coded) {
			return coded.ErrorCode()
		}
		return -1
	}
	done := make(chan error, 1)
	p.Await(a.LastOffset, func(err error) { done <- err })
	if <-done != nil {
		return codeStorageError
	}
	c.seq[i]++
	return 0
}

// end sends one EndTxn.
func (c *client) end(commit bool) coordinator.EndReply {
	ch := make(chan coordinator.EndReply, 1)
	c.n.txns.End(coordinator.EndRequest{ID: c.id, ProducerID: c.pid, Epoch: c.epoch, Commit: commit, Version: c.version},
		func(r coordinator.EndReply) { ch <- r })
	return <-ch
}

// ended takes what an EndTxn answered.
func (c *client) ended(r coordinator.EndReply) {
	if c.version >= 5 {
		c.pid, c.epoch, c.seq = r.ProducerID, r.Epoch, map[int32]int32{}
	}
}

// logged is a batch of a partition as the tests look at it.
type logged struct {
	pid    int64
	epoch  int16
	marker bool
	commit bool
	value  string
}

func (n *node) log(topic string, i int32) []logged {
	n.t.Helper()
	var out []logged
	err := n.part(topic, i).Replay(func(b record.Batch) error {
		l := logged{pid: b.ProducerID(), epoch: b.ProducerEpoch(), marker: b.Attributes().Control()}
		if l.marker {
			m, _, err := b.Marker()
			if err != nil {
				return err
			}
			l.commit = m.Commit
		} else {
			for r, err := range b.Records(nil) {
				if err != nil {
					return err
				}
				l.value = string(r.Value)
			}
		}
		out = append(out, l)
		return nil
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// atRest waits until no decision is under way and nothing is open on a partition.
func (n *node) atRest() {
	n.t.Helper()
	for i := range int32(dataPartitions) {
		p := n.part("t", i)
		n.eventually(fmt.Sprintf("t-%d at rest", i), func() bool {
			n.txns.mu.Lock()
			busy := len(n.txns.running)
			n.txns.mu.Unlock()
			m := p.Marks()
			return busy == 0 && m.LastStable == m.LogEnd
		})
	}
}

func (n *node) eventually(what string, ok func() bool) {
	n.t.Helper()
	if t, is := n.t.(*testing.T); is {
		eventually(t, what, ok)
	}
}
