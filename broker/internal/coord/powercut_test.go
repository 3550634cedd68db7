package coord

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/vfs"
)

// confirmed is what clients were told: by transaction, which partitions took its
// record and whether it was committed.
type confirmed struct {
	mu   sync.Mutex
	txns map[string]outcomeOf
}

type outcomeOf struct {
	commit     bool
	partitions []int32
}

func (c *confirmed) clone() map[string]outcomeOf {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.txns)
}

// cut is a disk after a power cut, and what was confirmed before it.
type cut struct {
	seed uint64
	fs   *vfs.Mem
	told map[string]outcomeOf
}

// TestPowerCuts cuts the power at random file operations of three clients, of both
// versions. After the restart every confirmed transaction is whole, with its outcome,
// and none is torn: committed on one partition and aborted on another.
func TestPowerCuts(t *testing.T) {
	seeds, transactions := uint64(12), 40
	if testing.Short() {
		seeds = 3
	}
	cuts := 0
	for seed := range seeds {
		mem := vfs.NewMem()
		faults := vfs.WithFaults(mem)
		told := &confirmed{txns: map[string]outcomeOf{}}
		pids := new(atomic.Int64)
		all := cutPower(t, seed, faults, mem, told, pids, transactions)
		cuts += len(all)
		for _, c := range all {
			restartAfter(t, c, pids)
			if t.Failed() {
				t.Fatalf("seed %d, power cut with seed %d", seed, c.seed)
			}
		}
	}
	t.Logf("%d power cuts", cuts)
	if cuts < 10*int(seeds) {
		t.Fatalf("only %d power cuts", cuts)
	}
}

// cutPower runs the clients and clones the disk now and then.
func cutPower(t *testing.T, seed uint64, faults *vfs.Faults, mem *vfs.Mem, told *confirmed, pids *atomic.Int64, transactions int) []cut {
	n := newNode(t, faults, clock.System(), pids)
	var wg sync.WaitGroup
	clients := []*client{n.client("a", 5).init(), n.client("b", 4).init(), n.client("c", 5).init()}
	var mu sync.Mutex
	var cuts []cut
	rng := rand.New(rand.NewPCG(seed, 7))
	faults.OnOp(func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind&vfs.OpChanges != 0 && rng.IntN(40) == 0 && len(cuts) < 40 {
			c := cut{seed: rng.Uint64(), told: told.clone()} // before the disk
			c.fs = mem.CrashClone(c.seed)
			cuts = append(cuts, c)
		}
	})
	for k, c := range clients {
		wg.Go(func() { c.work(rand.New(rand.NewPCG(seed, 100+uint64(k))), told, transactions) })
	}
	wg.Wait()
	faults.OnOp(nil)
	n.close()
	mu.Lock()
	defer mu.Unlock()
	return cuts
}

// work runs transactions of one to three records each.
func (c *client) work(rng *rand.Rand, told *confirmed, transactions int) {
	for i := range transactions {
		name := fmt.Sprintf("%s-%d", c.id, i)
		o := outcomeOf{commit: rng.IntN(3) > 0}
		for _, p := range rng.Perm(dataPartitions)[:1+rng.IntN(3)] {
			if c.version < 5 {
				if code := c.add(TopicPartition{Topic: "t", Partition: int32(p)}); code != 0 {
					c.n.t.Errorf("%s: add: code %d", name, code)
					return
				}
			}
			if code := c.produce(int32(p), name); code != 0 {
				c.n.t.Errorf("%s: produce: code %d", name, code)
				return
			}
			o.partitions = append(o.partitions, int32(p))
		}
		r := c.end(o.commit)
		if r.Code != 0 {
			c.n.t.Errorf("%s: end: code %d", name, r.Code)
			return
		}
		c.ended(r)
		told.mu.Lock()
		told.txns[name] = o
		told.mu.Unlock()
	}
}

// restartAfter starts on a cloned disk, lets new incarnations take the ids over, and
// checks the logs.
func restartAfter(t *testing.T, c cut, pids *atomic.Int64) {
	n := newNode(t, c.fs, clock.System(), pids)
	defer n.close()
	for _, id := range []string{"a", "b", "c"} {
		n.client(id, 5).init()
	}
	n.atRest()
	outcomes := map[string]map[bool][]int32{}
	for i := range int32(dataPartitions) {
		open := map[int64][]string{}
		for _, l := range n.log("t", i) {
			if !l.marker {
				open[l.pid] = append(open[l.pid], l.value)
				continue
			}
			for _, name := range open[l.pid] {
				if outcomes[name] == nil {
					outcomes[name] = map[bool][]int32{}
				}
				outcomes[name][l.commit] = append(outcomes[name][l.commit], i)
			}
			delete(open, l.pid)
		}
		if len(open) > 0 {
			t.Errorf("t-%d: undecided %v", i, open)
		}
	}
	for name, o := range outcomes {
		if len(o) > 1 {
			t.Errorf("%s is torn: committed on %v, aborted on %v", name, o[true], o[false])
		}
	}
	for name, o := range c.told {
		if got := len(outcomes[name][o.commit]); got != len(o.partitions) {
			t.Errorf("%s, commit %t, was confirmed on %v and is there on %v", name, o.commit, o.partitions, outcomes[name])
		}
	}
}
