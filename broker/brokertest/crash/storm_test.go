package crash

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/broker/brokertest"
)

// machine is what a story's broker runs on.
type machine interface {
	cluster
	Restart(t testing.TB)
	Crash(t testing.TB, seed uint64)
	FailDisk(kind, part string) (heal func())
}

// storm is a long random story on a node that is restarted, loses power, and whose disk fails under some files. What a
// request that failed has done is not known; what was acknowledged stays acknowledged.
type storm struct {
	*story
	rng     *rand.Rand
	node    machine
	w       *wire
	topics  []*topicFact // by slot, nil when there is none
	plain   *producer
	txn     []*producer // by version - 1
	frail   bool        // the disk may fail at any time
	refused bool        // a request was
	sick    bool        // a file has failed since the last start: some answers stay errors
	heal    func()
	steps   []string
	n       int
}

var (
	slots = []string{"a", "b", "c"}
	// diskFaults are kinds of brokertest.FailDisk, and faultyFiles parts of paths.
	diskFaults  = []string{"write", "sync", "read", "full"}
	faultyFiles = []string{"/a-0/", "/b-", "/c-0/0", ".log", ".index", ".timeindex", ".txnindex", ".txnsum", ".snapshot", "leader-epoch",
		"partition.metadata", "recovery-journal", "__cluster_metadata-0", "__consumer_offsets", "__transaction_state", ""}
)

func (m *storm) note(format string, args ...any) {
	m.steps = append(m.steps, fmt.Sprintf(format, args...))
}

// connect dials the node again and forgets what producers thought of their partitions' health.
func (m *storm) connect() {
	m.w = dial(m.t, m.node)
	m.w.hopeless = func() bool { return m.sick || m.frail }
	for _, p := range append(m.txn, m.plain) {
		if p != nil {
			p.w = m.w
		}
	}
}

// boot ends the run of the broker in one way or the other and begins a new one.
func (m *storm) boot() {
	m.w.close()
	if clean := !m.sick && m.rng.IntN(3) == 0; clean {
		m.note("restart")
		m.node.Restart(m.t)
	} else {
		seed := m.rng.Uint64()
		m.note("power cut, seed %d", seed)
		m.node.Crash(m.t, seed)
	}
	m.sick, m.heal = false, nil
	m.connect()
}

// ready gives a producer an id if it has none, and says whether it has one now.
func (m *storm) ready(p *producer) bool {
	return p.pid >= 0 || m.w.until(p.init) == 0
}

// failed lets a producer begin anew after a request that failed.
func (m *storm) failed(p *producer, what string, c int16) {
	m.note("%s: %s", what, code(c))
	p.pid = -1
	m.refused = m.refused || c == kerr.KafkaStorageError.Code || c == kerr.UnknownServerError.Code
	if !m.sick && !m.frail && c != kerr.UnknownTopicOrPartition.Code {
		m.t.Fatalf("%s: %s, and no disk has failed", what, code(c))
	}
}

func (m *storm) values() []string {
	var out []string
	for range 1 + m.rng.IntN(3) {
		m.n++
		out = append(out, fmt.Sprintf("v%d", m.n))
	}
	return out
}

func (m *storm) writeSome(p *producer, txn *txnFact) bool {
	i := m.rng.IntN(len(m.topics))
	topic := m.topics[i]
	if topic == nil || !m.ready(p) {
		return false
	}
	partition := m.rng.Int32N(topic.partitions)
	f := &writeFact{topic: topic, partition: partition, values: m.values(), txn: txn, pid: p.pid}
	if txn == nil {
		f.raw = batch(p.pid, p.epoch, p.seq[partitionName(topic.name, partition)], false, f.values...)
	}
	m.writes = append(m.writes, f)
	m.note("%s writes %q to %s-%d", p.id, f.values, topic.name, partition)
	c := m.try(m.w, &f.moment, func() int16 {
		base, c := p.send(topic.name, partition, f.values...)
		f.base = base
		return c
	})
	if c != 0 {
		m.failed(p, "produce", c)
	}
	return c == 0
}

// transaction runs one, with a restart or a power cut in the middle of some.
func (m *storm) transaction() {
	p := m.txn[m.rng.IntN(len(m.txn))]
	if !m.ready(p) {
		return
	}
	t := m.begin()
	wrote := false
	for range 1 + m.rng.IntN(3) {
		if p.pid < 0 {
			return // it is aborted by the next InitProducerId
		}
		wrote = m.writeSome(p, t) || wrote
		if m.rng.IntN(15) == 0 {
			m.boot()
		}
	}
	if p.pid < 0 || !wrote {
		p.pid = -1
		return
	}
	if topic := m.topics[0]; topic != nil && m.rng.IntN(2) == 0 {
		f := &offsetFact{topic: topic, at: m.next(), txn: t}
		m.moves = append(m.moves, f)
		m.note("%s takes offset %d into the transaction", p.id, f.at)
		if c := m.try(m.w, &f.moment, func() int16 { return p.commitOffset(topic.name, 0, f.at) }); c != 0 {
			m.failed(p, "offset in transaction", c)
			return
		}
	}
	t.commit = m.rng.IntN(3) > 0
	m.note("%s ends, commit %v", p.id, t.commit)
	if c := m.try(m.w, &t.ended, func() int16 { return p.end(t.commit) }); c != 0 {
		m.failed(p, "EndTxn", c)
	}
}

func (m *storm) next() int64 { m.n++; return int64(m.n) }

func (m *storm) moveOffset() {
	topic := m.topics[0]
	if topic == nil {
		return
	}
	f := &offsetFact{topic: topic, at: m.next()}
	m.moves = append(m.moves, f)
	c := m.try(m.w, &f.moment, func() int16 { return m.w.commitOffset(topic.name, 0, f.at) })
	m.note("offset %d: %s", f.at, code(c))
}

// turn makes a topic or deletes it; one whose fate is not known is left alone.
func (m *storm) turn() {
	i := 1 + m.rng.IntN(len(slots)-1)
	if f := m.topics[i]; f != nil {
		m.topics[i] = nil
		delete(m.plain.seq, partitionName(f.name, 0))
		delete(m.plain.seq, partitionName(f.name, 1))
		c := m.try(m.w, &f.deleted, func() int16 { return m.w.deleteTopic(f.name) })
		m.note("delete %s: %s", f.name, code(c))
		return
	}
	f := &topicFact{name: fmt.Sprintf("%s%d", slots[i], m.next()), partitions: 1 + m.rng.Int32N(2)}
	m.story.topics = append(m.story.topics, f)
	c := m.try(m.w, &f.made, func() int16 { return m.w.createTopic(f.name, f.partitions) })
	m.note("create %s: %s", f.name, code(c))
	if c == 0 {
		m.topics[i] = f
	}
}

func (m *storm) failDisk() {
	if m.heal != nil {
		m.note("disk works again")
		m.heal()
		m.heal = nil
		return
	}
	kind, part := diskFaults[m.rng.IntN(len(diskFaults))], faultyFiles[m.rng.IntN(len(faultyFiles))]
	m.note("disk: %s fails on %q", kind, part)
	m.sick = true
	m.heal = m.node.FailDisk(kind, part)
}

func (m *storm) step() {
	switch m.rng.IntN(20) {
	case 0, 1, 2, 3, 4, 5:
		m.writeSome(m.plain, nil)
	case 6, 7, 8, 9, 10, 11, 12:
		m.transaction()
	case 13, 14:
		m.moveOffset()
	case 15:
		m.turn()
	case 16, 17:
		m.failDisk()
	default:
		m.boot()
	}
}

// TestStorms tells random stories and checks each at its end, after a last power cut.
func TestStorms(t *testing.T) {
	storms, steps := 8, 60
	if soak() {
		storms, steps = 300, 150
	}
	seed := newSeed(t)
	for i := range uint64(storms) {
		m := &storm{story: &story{t: t, ids: []string{"one", "two"}}, rng: rand.New(rand.NewPCG(seed, i)), topics: make([]*topicFact, len(slots))}
		m.node = brokertest.StartNode(t, small, quiet)
		m.connect()
		m.topics[0] = m.create(m.w, slots[0], 2)
		m.plain = &producer{w: m.w, pid: -1}
		m.txn = []*producer{{w: m.w, id: "one", version: 1, pid: -1}, {w: m.w, id: "two", version: 2, pid: -1}}
		for range steps {
			m.step()
		}
		m.sick = true // no clean stop
		m.boot()
		if err := m.holds(m.node, cut{m.clock.Load(), m.clock.Load()}, nil); err != nil {
			for _, s := range m.steps {
				t.Log(s)
			}
			t.Fatalf("storm %d of seed %d: %v", i, seed, err)
		}
		m.w.close()
	}
}
