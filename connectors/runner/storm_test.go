package runner_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/runner"
	"github.com/millrace/millrace/connectors/sqlite"
	"github.com/millrace/millrace/core/seedtest"
)

// weather is a cluster whose connections break and stall.
type weather struct {
	connectors.Cluster
	mu    sync.Mutex
	conns []net.Conn
	held  chan struct{} // closed while answers pass
}

func newWeather(c connectors.Cluster) *weather {
	w := &weather{Cluster: c, held: make(chan struct{})}
	close(w.held)
	return w
}

func (w *weather) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := w.Cluster.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
	return &heldConn{c, w}, nil
}

type heldConn struct {
	net.Conn
	w *weather
}

func (c *heldConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.w.mu.Lock()
	held := c.w.held
	c.w.mu.Unlock()
	<-held
	return n, err
}

func (w *weather) cut(which func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = slices.DeleteFunc(w.conns, func(c net.Conn) bool {
		if !which() {
			return false
		}
		_ = c.Close() // it may be broken already
		return true
	})
}

// hold keeps all answers back for a while.
func (w *weather) hold(d time.Duration) {
	held := make(chan struct{})
	w.mu.Lock()
	w.held = held
	w.mu.Unlock()
	time.Sleep(d)
	close(held)
}

// storm is two connectors of one sink under everything that can go wrong.
type storm struct {
	t     *testing.T
	rnd   *rand.Rand
	node  *brokertest.Node
	way   *weather
	path  string
	sent  int // ids committed to the log
	sinks [2]func() error
	last  [2]*runner.Sink
	story []string
}

// TestStorm: the rows are exact, whatever happens to broker, network, group,
// claims, database and connectors. MILLRACE_SOAK=n makes it n times as long.
func TestStorm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	rounds := 1
	if n, err := strconv.Atoi(os.Getenv("MILLRACE_SOAK")); err == nil {
		rounds = n
	}
	seed := seedtest.New(t)
	node := brokertest.StartNode(t, brokertest.Configure(func(c *broker.Config) { c.GroupInitialRebalanceDelay = time.Millisecond }))
	s := &storm{t: t, rnd: rand.New(rand.NewPCG(seed, 5)), node: node, way: newWeather(node), path: filepath.Join(t.TempDir(), "out.db")}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what happened: %v", s.story)
		}
	})
	createTopic(t, node, "orders", 3)
	for range 30 * rounds {
		s.write(s.rnd.IntN(40), s.rnd.IntN(4) > 0)
		s.strike()
	}
	for i := range s.sinks {
		if s.sinks[i] == nil {
			s.start(i)
		}
	}
	s.write(10, true)
	s.settle()
	for i := range s.sinks {
		s.stop(i)
	}
	exactly(t, s.path, s.sent)
}

func (s *storm) tell(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf(format, args...))
}

func (s *storm) write(n int, commit bool) {
	s.t.Helper()
	produce(s.t, s.node, "orders", "writer", s.sent, n, commit)
	if commit {
		s.sent += n
	}
}

func (s *storm) start(i int) {
	s.t.Helper()
	s.last[i], s.sinks[i] = start(s.t, runner.SinkOptions{
		Cluster: s.way, Topics: []string{"orders"}, Value: connectors.JSON, Tasks: 1 + s.rnd.IntN(2), Group: "storm",
		Linger: 3 * time.Millisecond, MaxRecords: 1 + s.rnd.IntN(50), SessionTimeout: 6 * time.Second,
		RetryMin: 5 * time.Millisecond, RetryMax: 100 * time.Millisecond, CallTimeout: 5 * time.Second,
		New: func(int) (connectors.TxSink, error) {
			c := sqliteConfig(s.path)
			c.BusyTimeout = 50 * time.Millisecond
			return sqlite.New(c)
		},
	})
}

func (s *storm) stop(i int) {
	s.t.Helper()
	if err := s.sinks[i](); err != nil {
		s.t.Fatalf("connector %d: %v", i, err)
	}
	s.sinks[i] = nil
}

func (s *storm) strike() {
	s.t.Helper()
	i := s.rnd.IntN(2)
	switch n := s.rnd.IntN(18); {
	case s.sinks[i] == nil:
		s.tell("start %d", i)
		s.start(i)
	case n < 2:
		s.tell("stop %d", i)
		s.stop(i)
	case n < 4:
		s.tell("power cut")
		s.node.Crash(s.t, s.rnd.Uint64())
	case n < 6:
		s.tell("restart")
		s.node.Restart(s.t)
	case n < 9:
		s.tell("cut")
		s.way.cut(func() bool { return s.rnd.IntN(3) == 0 })
	case n < 11:
		s.tell("stall")
		s.way.hold(time.Duration(s.rnd.IntN(500)) * time.Millisecond)
	case n < 12:
		s.tell("away for longer than the group waits")
		s.way.hold(6500 * time.Millisecond)
	case n < 14:
		s.tell("database locked")
		s.lock(time.Duration(s.rnd.IntN(300)) * time.Millisecond)
	case n < 15:
		s.tell("claims deleted")
		s.admin(func(ctx context.Context, a *kadm.Client) error {
			_, err := a.DeleteTopic(ctx, runner.DefaultClaimTopic)
			return err
		})
	case n < 16:
		s.tell("group deleted")
		// It is refused while the group has members, which is fine too.
		s.admin(func(ctx context.Context, a *kadm.Client) error { _, _ = a.DeleteGroup(ctx, "storm"); return nil })
	}
	time.Sleep(time.Duration(s.rnd.IntN(150)) * time.Millisecond)
}

func (s *storm) admin(f func(context.Context, *kadm.Client) error) {
	s.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.node.Seeds()...), kgo.Dialer(s.node.Dial))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	if err := f(s.t.Context(), kadm.NewClient(cl)); err != nil {
		s.tell("%v", err)
	}
}

// lock holds the write lock of the database as another process would.
func (s *storm) lock(d time.Duration) {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		s.t.Fatal(err)
	}
	tx, err := db.BeginTx(s.t.Context(), nil)
	if err == nil {
		time.Sleep(d)
		err = tx.Rollback()
	}
	if err = errors.Join(err, db.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// settle waits until the store has every position at the end of its log.
func (s *storm) settle() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	store, err := sqlite.New(sqliteConfig(s.path))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	for {
		ends := map[int32]int64{}
		s.admin(func(ctx context.Context, a *kadm.Client) error {
			l, err := a.ListEndOffsets(ctx, "orders")
			l.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
			return err
		})
		at, err := store.Positions(ctx)
		if err != nil && ctx.Err() != nil {
			s.t.Fatal(err)
		}
		for _, p := range at {
			if p.Position.Next == ends[p.TP.Partition] {
				delete(ends, p.TP.Partition)
			}
		}
		if len(ends) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("the store is at %+v, of these the log has more: %v\n%+v\n%+v", at, ends, s.last[0].Status(), s.last[1].Status())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
