package crash

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/vfs"
)

// mixed is a random story in which everything that changes a disk goes on at once: segments of a few hundred bytes roll,
// compaction and retention run without a pause, also over the coordinators' own logs, several producers share their fsyncs,
// topics come and go, settings change, and the broker is stopped and started. What it notes is judged like every story.
type mixed struct {
	*story
	rng   *rand.Rand
	disk  *vfs.Mem
	told  *reaper
	b     *broker.Broker
	w     *wire
	crowd []*producer // one for each partition of g, with a connection of its own
	plain *producer
	txns  []*turn

	a, g, k, r *topicFact
	o, i       *topicFact // relaxed
	c          *topicFact // comes and goes; nil when it is gone
	settings   bool       // of topics can be changed
	n          int
	steps      []string
}

// turn is a transactional producer and the transaction that it has under way, nil without one.
type turn struct {
	p   *producer
	txn *txnFact
}

// segments are the settings that make a partition's files small.
var segments = []string{"internal.segment.bytes=500", "index.interval.bytes=100", "file.delete.delay.ms=0"}

// busy lets retention and compaction look all the time.
var busy = brokertest.CleanEvery(2 * time.Millisecond)

func (m *mixed) note(format string, args ...any) {
	m.steps = append(m.steps, fmt.Sprintf(format, args...))
}

// boot starts the broker on the disk and connects everybody.
func (m *mixed) boot(options ...brokertest.Option) {
	m.b = m.told.start(m.t, m.disk, append(options, busy)...)
	m.w = dial(m.t, m.b)
	m.plain.w = m.w
	for _, one := range m.txns {
		one.p.w = m.w
	}
	for _, p := range m.crowd {
		p.w = dial(m.t, m.b)
	}
}

func (m *mixed) halt() {
	m.w.close()
	for _, p := range m.crowd {
		p.w.close()
	}
	stop(m.t, m.b)
	m.stops = append(m.stops, m.clock.Add(1))
}

// setUp makes what the steps work on.
func (m *mixed) setUp() {
	m.plain = &producer{}
	m.txns = []*turn{{p: &producer{id: "one", version: 1}}, {p: &producer{id: "two", version: 2}}}
	m.ids = []string{"one", "two"}
	m.crowd = []*producer{{}, {}, {}}
	m.boot(brokertest.InternalTopics(map[string]string{
		"internal.segment.bytes": "1000", "min.cleanable.dirty.ratio": "0", "index.interval.bytes": "100",
	}))
	m.settings = m.w.knows(kmsg.IncrementalAlterConfigs)
	m.a = m.create(m.w, "a", 2, segments...)
	m.g = m.create(m.w, "g", int32(len(m.crowd)))
	m.k = m.create(m.w, "k", 1, append([]string{"cleanup.policy=compact", "min.cleanable.dirty.ratio=0"}, segments...)...)
	m.r = m.create(m.w, "r", 1, append([]string{"retention.bytes=1500"}, segments...)...)
	m.r.expires = m.r.made
	m.o = m.create(m.w, "o", 1, append([]string{"millrace.durability=os"}, segments...)...)
	m.i = m.create(m.w, "i", 1, append([]string{"millrace.durability=interval", "flush.ms=5"}, segments...)...)
	for _, p := range append([]*producer{m.plain, m.txns[0].p, m.txns[1].p}, m.crowd...) {
		p.w.must("InitProducerId of "+p.id, p.init)
	}
}

// values are n new ones for a topic; those of a compacted one have few keys, and some are tombstones.
func (m *mixed) values(topic *topicFact) []string {
	var out []string
	for range 1 + m.rng.IntN(3) {
		m.n++
		v := fmt.Sprintf("v%d", m.n)
		switch {
		case topic.keyed && m.rng.IntN(8) == 0:
			v = fmt.Sprintf("key%d.%d=", m.n, m.n) // a key of its own: else two tombstones would look the same
		case topic.keyed:
			v = fmt.Sprintf("key%d=%d%s", m.rng.IntN(5), m.n, strings.Repeat(".", m.rng.IntN(60)))
		case topic == m.r || topic == m.o || m.rng.IntN(4) == 0:
			v += strings.Repeat(".", m.rng.IntN(120))
		}
		out = append(out, v)
	}
	return out
}

// somewhere is a partition that is there.
func (m *mixed) somewhere() (*topicFact, int32) {
	topics := []*topicFact{m.a, m.a, m.k, m.k, m.r, m.o, m.i}
	if m.c != nil {
		topics = append(topics, m.c)
	}
	t := topics[m.rng.IntN(len(topics))]
	return t, m.rng.Int32N(t.partitions)
}

func (m *mixed) writeSome(p *producer, txn *txnFact) {
	topic, partition := m.somewhere()
	values := m.values(topic)
	m.note("%q writes %q to %s-%d", p.id, values, topic.name, partition)
	m.write(p, txn, topic, partition, values...)
}

// burst lets every producer of the crowd send three batches before it reads an answer, all at the same time.
func (m *mixed) burst() {
	m.note("burst")
	var all sync.WaitGroup
	for i, p := range m.crowd {
		var facts []*writeFact
		for range 3 {
			f := &writeFact{topic: m.g, partition: int32(i), values: m.values(m.g), pid: p.pid}
			at := partitionName("g", f.partition)
			f.raw = batch(p.pid, p.epoch, p.seq[at], false, f.values...)
			p.seq[at] += int32(len(f.values))
			facts = append(facts, f)
		}
		m.writes = append(m.writes, facts...)
		all.Go(func() { m.pipeline(p.w, facts) })
	}
	all.Wait()
}

// pipeline sends batches one behind the other and then waits for all of them.
func (m *mixed) pipeline(w *wire, facts []*writeFact) {
	for _, f := range facts {
		f.tried = m.clock.Add(1)
		if err := w.send(w.frame(produceRequest(9, "", "g", f.partition, f.raw))); err != nil {
			m.t.Errorf("produce to g-%d: %v", f.partition, err)
			return
		}
	}
	for _, f := range facts {
		base, err := w.produced()
		if err != nil {
			m.t.Errorf("produce to g-%d: %v", f.partition, err)
			return
		}
		f.base, f.acked = base, m.clock.Add(1)
	}
}

// transact moves one transaction a step on.
func (m *mixed) transact() {
	one := m.txns[m.rng.IntN(len(m.txns))]
	if one.txn == nil {
		one.txn = m.begin()
		m.writeSome(one.p, one.txn)
		return
	}
	switch m.rng.IntN(6) {
	case 0, 1:
		m.writeSome(one.p, one.txn)
	case 2:
		m.n++
		at := int64(m.n)
		m.note("%q takes offset %d of a-0", one.p.id, at)
		m.move(m.w, one.txn, m.a, 0, at, func() int16 { return one.p.commitOffset("a", 0, at) })
	default:
		commit := m.rng.IntN(3) > 0
		m.note("%q ends, commit %v", one.p.id, commit)
		m.end(one.p, one.txn, commit)
		one.txn = nil
	}
}

func (m *mixed) moveOffset() {
	m.n++
	at := int64(m.n)
	m.note("offset %d of a-1", at)
	m.move(m.w, nil, m.a, 1, at, func() int16 { return m.w.commitOffset("a", 1, at) })
}

// cutOff deletes records of a up to a random place below the high watermark.
func (m *mixed) cutOff() {
	partition := m.rng.Int32N(m.a.partitions)
	start, _ := m.w.offset("a", partition, -2, false)
	end, c := m.w.offset("a", partition, -1, false)
	if c != 0 || end <= start {
		return
	}
	before := start + m.rng.Int64N((end-start)/2+1)
	m.note("delete records of a-%d before %d", partition, before)
	m.trim(m.w, m.a, partition, before)
}

// comeAndGo makes topic c or deletes it.
func (m *mixed) comeAndGo() {
	if m.c == nil {
		m.note("create c")
		m.c = m.create(m.w, "c", 2, segments...)
		return
	}
	m.note("delete c")
	m.delete(m.w, m.c)
	m.c = nil
	for _, p := range []*producer{m.plain, m.txns[0].p, m.txns[1].p} {
		delete(p.seq, partitionName("c", 0))
		delete(p.seq, partitionName("c", 1))
	}
}

// reconfigure changes a setting that moves files.
func (m *mixed) reconfigure() {
	var topic *topicFact
	var setting string
	if !m.settings {
		return
	}
	switch m.rng.IntN(4) {
	case 0:
		topic, setting = m.r, "retention.bytes=-1"
	case 1:
		topic, setting = m.r, "retention.bytes=1200"
	case 2:
		topic, setting = m.a, fmt.Sprintf("internal.segment.bytes=%d", 400+m.rng.IntN(1000))
	default:
		topic, setting = m.k, fmt.Sprintf("min.cleanable.dirty.ratio=0.%d", m.rng.IntN(6))
	}
	m.note("%s: %s", topic.name, setting)
	m.step(m.w, setting, new(moment), func() int16 { return m.w.configure(topic.name, setting) })
}

// cleaned waits for a round of compaction that begins from now on.
func (m *mixed) cleaned() {
	m.note("compaction looks")
	rounds := m.b.Cleaning().CompactionRounds
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); m.b.Cleaning().CompactionRounds < rounds+2 && time.Now().Before(end); {
		<-tick.C
	}
}

func (m *mixed) restart() {
	m.note("restart")
	m.halt()
	m.boot()
}

func (m *mixed) act() {
	switch m.rng.IntN(28) {
	case 0, 1, 2, 3, 4, 5, 6:
		m.writeSome(m.plain, nil)
	case 7, 8, 9, 10, 11, 12, 13, 14, 15, 16:
		m.transact()
	case 17, 18, 19:
		m.burst()
	case 20, 21:
		m.moveOffset()
	case 22:
		m.cutOff()
	case 23:
		m.comeAndGo()
	case 24, 25:
		m.reconfigure()
	case 26:
		m.cleaned()
	default:
		m.restart()
	}
}

// tellMixed tells a story of so many steps, of whose file operations one of every is followed by a power cut.
func tellMixed(t testing.TB, seed uint64, steps, every int) *mixed {
	m := &mixed{story: &story{t: t}, rng: rand.New(rand.NewPCG(seed, 6)), disk: vfs.NewMem()}
	m.told = &reaper{rng: rand.New(rand.NewPCG(seed, 7)), mem: m.disk, clock: m.clock.Load, every: every}
	m.setUp()
	for range steps {
		m.act()
	}
	m.cleaned()
	m.halt()
	return m
}
