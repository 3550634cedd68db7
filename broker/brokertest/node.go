package brokertest

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/vfs"
)

// Node is a broker whose machine a test owns: it can be stopped and started,
// crashed, and its disk can fail. Clients keep their seeds and dialer across
// restarts. Restart and Crash are called by one goroutine at a time.
type Node struct {
	options []Option
	disk    *vfs.Mem
	power   *power
	broker  atomic.Pointer[broker.Broker]
}

// StartNode starts a node on an empty disk in memory. It is closed when the test
// ends.
func StartNode(t testing.TB, options ...Option) *Node {
	t.Helper()
	n := &Node{options: options}
	n.boot(t, vfs.NewMem())
	t.Cleanup(func() {
		if err := n.Broker().Close(); err != nil {
			t.Logf("close broker: %v", err) // after a disk fault that is to be expected
		}
	})
	return n
}

// Broker is the broker that runs now.
func (n *Node) Broker() *broker.Broker { return n.broker.Load() }

// Seeds are the addresses to start a client with.
func (n *Node) Seeds() []string { return n.Broker().Seeds() }

// Dial connects to the broker that runs now.
func (n *Node) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return n.Broker().Dial(ctx, network, addr)
}

// boot starts a broker on the disk.
func (n *Node) boot(t testing.TB, disk *vfs.Mem) {
	t.Helper()
	n.disk, n.power = disk, &power{fs: disk}
	b, err := start(t, append(n.options[:len(n.options):len(n.options)], OnFS(n.power)))
	if err != nil {
		t.Fatalf("start broker: %v", err)
	}
	n.broker.Store(b)
}

// Restart stops the broker cleanly and starts it on the same disk.
func (n *Node) Restart(t testing.TB) {
	t.Helper()
	if err := n.Broker().Close(); err != nil {
		t.Fatalf("close broker: %v", err)
	}
	n.boot(t, n.disk)
}

// Crash takes the power away and starts the broker on what the disk has then: all
// that was synced, and of the rest what the seed chooses, torn writes included.
func (n *Node) Crash(t testing.TB, seed uint64) {
	t.Helper()
	n.power.cut()
	left := n.disk.CrashClone(seed)
	// The process that lost its disk ends; what it says about that is of no
	// interest.
	_ = n.Broker().Close()
	n.boot(t, left)
}

// FailDisk makes operations of a kind fail on files whose path contains part, "" is
// all, until healed. Kinds: "write" and "sync" fail with an I/O error (sync also on what is shared by all partitions), "read" fails
// reads, "full" fails writes and new files for lack of space. It lasts until the
// next Restart or Crash at most.
func (n *Node) FailDisk(kind, part string) (heal func()) {
	faults := map[string]fault{
		"write": {kinds: vfs.OpWrite, err: syscall.EIO},
		"sync":  {kinds: vfs.OpSync, err: syscall.EIO},
		"read":  {kinds: vfs.OpRead, err: syscall.EIO},
		"full":  {kinds: vfs.OpWrite | vfs.OpCreate | vfs.OpMkdir, err: syscall.ENOSPC},
	}
	f, ok := faults[kind]
	if !ok {
		panic(fmt.Sprintf("brokertest: no disk fault %q", kind))
	}
	f.part = part
	own := n.power.add(&f)
	if kind != "sync" {
		return own
	}
	// A small append is synced in an append journal, whichever partition it is of; without one every partition syncs its own file.
	shared := f
	shared.part = flush.CarryName
	journals := n.power.add(&shared)
	return func() { journals(); own() }
}
