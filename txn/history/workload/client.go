package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace/millrace/txn/history"
)

// flavour is what a client is, by its number.
type flavour struct {
	transactional bool
	version1      bool // speaks the transactions of before Kafka 4.0
	static        bool // keeps its place in a group when it comes back
}

func flavourOf(client int) flavour {
	switch client % 4 {
	case 0:
		return flavour{transactional: true}
	case 1:
		return flavour{transactional: true, version1: true}
	case 2:
		return flavour{transactional: true, static: true}
	}
	return flavour{}
}

// client is one of those that work. It is used by one goroutine. While it works it has
// a process number; after a crash, or when an outcome is unknown, it gets a new one and
// begins anew, as a program would.
type client struct {
	*field
	number int
	flavour
	rng *rand.Rand

	process  int
	group    string                // "" reads what it assigned itself
	keys     []history.Key         // what it reads, or shares with its group
	next     map[history.Key]int64 // of an assignment: where to go on
	cl       *kgo.Client           // nil: has none
	session  *kgo.GroupTransactSession
	cancel   context.CancelFunc // ends cl at once
	mu       sync.Mutex
	moved    map[history.Key]bool // by rebalances since it was last asked; guarded by mu
	closings *sync.WaitGroup      // of clients that crashed
}

func (c *client) transactionalID() string { return c.name + "-x" + strconv.Itoa(c.number) }

// open connects with the assignment that is set.
func (c *client) open() error {
	ctx, cancel := context.WithCancel(context.Background())
	opts := append(c.connect(), kgo.WithContext(ctx), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(250*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if c.transactional {
		opts = append(opts, kgo.TransactionalID(c.transactionalID()), kgo.TransactionTimeout(time.Minute))
	}
	if c.version1 {
		opts = append(opts, kgo.MaxVersions(kversion.FromString("v3.9")))
	}
	var err error
	switch {
	case c.group == "":
		c.cl, err = kgo.NewClient(append(opts, kgo.ConsumePartitions(starts(c.keys, c.next)))...)
	case c.transactional:
		if c.session, err = kgo.NewGroupTransactSession(append(opts, c.membership()...)...); err == nil {
			c.cl = c.session.Client()
		}
	default:
		c.cl, err = kgo.NewClient(append(append(opts, c.membership()...), kgo.BlockRebalanceOnPoll())...)
	}
	if err != nil {
		cancel()
		return fmt.Errorf("workload: client %d: %w", c.number, err)
	}
	c.cancel = cancel
	return nil
}

// starts is where to read each partition from.
func starts(keys []history.Key, next map[history.Key]int64) map[string]map[int32]kgo.Offset {
	starts := map[string]map[int32]kgo.Offset{}
	for _, k := range keys {
		if starts[k.Topic] == nil {
			starts[k.Topic] = map[int32]kgo.Offset{}
		}
		// Offset 0 is the start, as nothing is deleted while a run lasts, and a
		// client must not look for another place when it is told otherwise.
		starts[k.Topic][k.Partition] = kgo.NoResetOffset().At(next[k])
	}
	return starts
}

// sessionTimeout is how long a group waits for a member that crashed.
const sessionTimeout = 6 * time.Second

func (c *client) membership() []kgo.Opt {
	opts := []kgo.Opt{
		kgo.ConsumerGroup(c.group), kgo.ConsumeTopics(c.topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(), kgo.SessionTimeout(sessionTimeout), kgo.HeartbeatInterval(100 * time.Millisecond),
		kgo.RebalanceTimeout(20 * time.Second),
		kgo.OnPartitionsAssigned(c.onMoved), kgo.OnPartitionsRevoked(c.onMoved), kgo.OnPartitionsLost(c.onMoved),
	}
	if c.group == c.groups[0] {
		opts = append(opts, kgo.Balancers(kgo.RangeBalancer()))
	}
	if c.static {
		opts = append(opts, kgo.InstanceID(c.transactionalID()))
	}
	return opts
}

func (c *client) onMoved(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moved == nil {
		c.moved = map[history.Key]bool{}
	}
	for topic, ps := range parts {
		for _, p := range ps {
			c.moved[history.Key{Topic: topic, Partition: p}] = true
		}
	}
}

// rebalanced returns the partitions that moved since it was last called.
func (c *client) rebalanced() []history.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []history.Key
	for k := range c.moved {
		keys = append(keys, k)
	}
	c.moved = nil
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b history.Key) int {
	if a.Topic != b.Topic {
		if a.Topic < b.Topic {
			return -1
		}
		return 1
	}
	return int(a.Partition - b.Partition)
}

// close says goodbye.
func (c *client) close() {
	if c.cl == nil {
		return
	}
	c.cl.CloseAllowingRebalance()
	c.cancel()
	c.cl, c.session = nil, nil
}

// drop ends the client in the middle of whatever it does: its group and its
// transaction hear nothing of it.
func (c *client) drop() {
	if c.cl == nil {
		return
	}
	c.cancel()
	c.closings.Go(c.cl.CloseAllowingRebalance)
	c.cl, c.session = nil, nil
}

// retire says goodbye in the background. Whatever the client still has under way may
// arrive late, and must not count then.
func (c *client) retire() {
	if c.cl == nil {
		return
	}
	cl, cancel := c.cl, c.cancel
	c.closings.Go(func() {
		late := time.AfterFunc(goodbye, cancel)
		cl.CloseAllowingRebalance()
		late.Stop()
		cancel()
	})
	c.cl, c.session = nil, nil
}

// goodbye is how long a retired client may try to leave its group.
const goodbye = 10 * time.Second

// renew makes the client a new process, without a past.
func (c *client) renew() {
	c.process = c.rec.process()
	c.group, c.keys, c.next = "", nil, map[history.Key]int64{}
}

// offsets in the form of the library.
func offsets(next map[history.Key]int64) map[string]map[int32]kgo.EpochOffset {
	out := map[string]map[int32]kgo.EpochOffset{}
	for k, o := range next {
		if out[k.Topic] == nil {
			out[k.Topic] = map[int32]kgo.EpochOffset{}
		}
		out[k.Topic][k.Partition] = kgo.EpochOffset{Epoch: -1, Offset: o}
	}
	return out
}

// errNoClient is what an operation fails with that finds no connection to work with.
var errNoClient = errors.New("the client could not be made")
