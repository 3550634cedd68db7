package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/vfs"
)

// site is a place in the program that does a kind of file operation: the innermost functions of the stack.
type site struct {
	kind vfs.Kind
	file string // kind of file
	at   string
}

func (s site) String() string { return fmt.Sprintf("%s of %s by %s", s.kind, s.file, s.at) }

// depth is how many functions tell one site from another.
const depth = 4

// here tells which site an operation comes from. It is called on the goroutine that does the operation.
func here(op vfs.Op) site {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var names []string
	for len(names) < depth {
		f, more := frames.Next()
		name, ours := strings.CutPrefix(f.Function, "github.com/millrace/millrace/broker/")
		if ours && !strings.HasPrefix(name, "brokertest") {
			names = append(names, strings.TrimPrefix(name, "internal/"))
		}
		if !more {
			break
		}
	}
	return site{op.Kind, kind(op.Path), strings.Join(names, " < ")}
}

// bench is a machine whose disk fails once, at a chosen site.
type bench struct {
	t     *testing.T
	mem   *vfs.Mem
	disk  *vfs.Faults
	log   *diary
	b     *broker.Broker
	heal  func()
	start error // why the broker did not start, while the disk failed

	mu    sync.Mutex
	sites map[site]int
	hit   string // path of the operation that failed
	syncs map[string]int
}

func newBench(t *testing.T) *bench {
	m := &bench{t: t, mem: vfs.NewMem(), log: new(diary), sites: map[site]int{}, heal: func() {}, syncs: map[string]int{}}
	m.disk = vfs.WithFaults(m.mem)
	return m
}

// count notes every site from now on.
func (m *bench) count() {
	m.disk.OnOp(func(op vfs.Op) {
		at := here(op)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sites[at]++
	})
}

// failAt lets the n-th operation of a site fail.
func (m *bench) failAt(at site, nth int, how failure) {
	m.disk.OnOp(func(op vfs.Op) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if op.Kind == vfs.OpSync && m.hit == op.Path && at.kind == vfs.OpSync {
			m.syncs[op.Path]++
		}
	})
	seen := 0
	m.heal = m.disk.Add(vfs.Rule{Kinds: at.kind, Err: how.err, Short: how.short, Nth: nth, When: func(op vfs.Op) bool {
		if kind(op.Path) != at.file || here(op) != at {
			return false
		}
		if seen++; seen == nth { // under the wrapper's lock
			m.mu.Lock()
			m.hit = op.Path
			m.mu.Unlock()
		}
		return true
	}})
}

func (m *bench) failed() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hit
}

// boot starts the broker; one that does not start for the fault is started again without it.
func (m *bench) boot() {
	m.t.Helper()
	m.forgive()
	options := []brokertest.Option{brokertest.OnFS(m.disk), small, m.log.option(), busy,
		brokertest.InternalTopics(map[string]string{"internal.segment.bytes": "1500", "min.cleanable.dirty.ratio": "0"})}
	b, err := startBroker(m.t, options...)
	if err != nil {
		m.start = errors.Join(m.start, err)
		m.heal()
		m.forgive()
		if b, err = startBroker(m.t, options...); err != nil {
			m.t.Fatalf("the second start fails too, with no fault any more: %v (the first: %v)", err, m.start)
		}
	}
	m.b = b
}

// forgive lets files be synced again: another process writes first what a failed sync may have dropped.
func (m *bench) forgive() {
	m.mu.Lock()
	clear(m.syncs)
	m.mu.Unlock()
}

// startBroker is brokertest.TryStart for brokers that may not close without an error.
func startBroker(t *testing.T, options ...brokertest.Option) (*broker.Broker, error) {
	return brokertest.StartLoose(t, options...)
}

func (m *bench) Seeds() []string { return m.b.Seeds() }
func (m *bench) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return m.b.Dial(ctx, network, addr)
}

// Restart stops the broker and starts it again. What was not well when it was stopped is in its error.
func (m *bench) Restart(t testing.TB) {
	if err := m.b.Close(); err != nil && m.failed() == "" {
		t.Fatalf("close broker: %v", err)
	}
	m.boot()
}

func (m *bench) Crash(t testing.TB, _ uint64)       { m.Restart(t) }
func (m *bench) FailDisk(_, _ string) (heal func()) { return func() {} }

// failure is one way in which an operation fails.
type failure struct {
	name  string
	err   error
	short int
}

// trial is a short story of everything on a bench. The same seed tells the same story, as far as the fault lets it.
type trial struct {
	*storm
	m *bench
}

func newTrial(t *testing.T, m *bench, seed uint64) *trial {
	s := &storm{
		story: &story{t: t, ids: []string{"one", "two"}}, rng: rand.New(rand.NewPCG(seed, 9)), topics: make([]*topicFact, len(slots)),
		node: m, frail: true,
	}
	return &trial{s, m}
}

// tell is the story: three rounds of it, with a restart between them.
func (r *trial) tell() {
	r.m.boot()
	r.connect()
	r.plain = &producer{w: r.w, pid: -1}
	r.txn = []*producer{{w: r.w, id: "one", version: 1, pid: -1}, {w: r.w, id: "two", version: 2, pid: -1}}
	r.make(0, "a", segments...)
	r.make(1, "b", append([]string{"cleanup.policy=compact", "min.cleanable.dirty.ratio=0"}, segments...)...)
	for round := range 3 {
		if round > 0 {
			r.w.close()
			r.m.Restart(r.t)
			r.connect()
		}
		for range 5 {
			r.writeSome(r.plain, nil)
			r.transaction()
			r.writeSome(r.plain, nil)
		}
		r.moveOffset()
		r.cutOff()
		r.turn()
		r.look()
	}
}

// make creates a topic, which may fail.
func (r *trial) make(slot int, name string, configs ...string) {
	f := &topicFact{name: name, partitions: 2, keyed: strings.Contains(fmt.Sprint(configs), "cleanup.policy=compact")}
	r.story.topics = append(r.story.topics, f)
	if c := r.try(r.w, &f.made, func() int16 { return r.w.createTopic(f.name, f.partitions, configs...) }); c == 0 {
		r.topics[slot] = f
	}
}

// cutOff deletes the first half of a-0.
func (r *trial) cutOff() {
	f := r.topics[0]
	if f == nil {
		return
	}
	end, c := r.w.offset(f.name, 0, -1, true)
	if c != 0 || end < 2 {
		return
	}
	t := &trimFact{topic: f, before: end / 2}
	r.trims = append(r.trims, t)
	r.try(r.w, &t.moment, func() int16 { return r.w.deleteRecords(f.name, 0, t.before) })
}

// look reads by offset and by time, whatever comes, and lets the cleaner have a round.
func (r *trial) look() {
	for _, f := range r.topics {
		if f == nil {
			continue
		}
		for p := range f.partitions {
			for _, ts := range []int64{-3, 1, time.Now().UnixMilli()} {
				r.w.offset(f.name, p, ts, true)
			}
			start, _ := r.w.offset(f.name, p, -2, false)
			end, _ := r.w.offset(f.name, p, -1, false)
			for at := start; at < end; at += 3 {
				r.fetch(f.name, p, at, at%2 == 0)
			}
		}
	}
	for end, was := time.Now().Add(patience), r.m.b.Cleaning(); r.m.b.Cleaning().CompactionRounds < was.CompactionRounds+2 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // a round is awaited
	}
}

// fetch reads; a file that can not be read in the middle of an answer costs the connection.
func (r *trial) fetch(topic string, partition int32, at int64, committed bool) {
	req := fetchRequest(topic, partition, at, committed)
	err := r.w.send(r.w.frame(req))
	if err == nil {
		_, err = r.w.receive(req)
	}
	if err != nil && r.m.failed() == "" {
		r.t.Fatalf("fetch of %s-%d: %v, and no file has failed", topic, partition, err)
	}
	if err != nil {
		r.refused = true
		r.w.close()
		r.connect()
	}
}

// folderOf is the partition's folder that a path lies in, "" for the data folder itself.
func folderOf(path string) string {
	parts := strings.Split(filepath.ToSlash(path), "/")
	if len(parts) < 3 {
		if len(parts) == 2 && strings.Contains(parts[1], "-") {
			return parts[1]
		}
		return ""
	}
	return parts[1]
}
