package crash

import (
	"slices"
	"sync/atomic"
	"testing"
)

// A story runs on one goroutine; its notes are read when it is over. Only the clock is read by others meanwhile.
type story struct {
	t      testing.TB
	clock  atomic.Int64 // counts tries and acknowledgements
	topics []*topicFact
	writes []*writeFact
	txns   []*txnFact
	moves  []*offsetFact
	trims  []*trimFact
	stops  []int64  // when a clean stop was complete
	ids    []string // transactional ids, whose open transactions a reader may have to end
}

// moment says when something was tried and when it was acknowledged, by the story's clock; 0 is never.
type moment struct{ tried, acked int64 }

// A cut is one power cut by the story's clock: read before and after the disk was cloned.
type cut struct{ before, after int64 }

func (m moment) mayBe(c cut) bool  { return m.tried != 0 && m.tried <= c.after }
func (m moment) mustBe(c cut) bool { return m.acked != 0 && m.acked <= c.before }

// topicFact is one life of a topic.
type topicFact struct {
	name          string
	partitions    int32
	made, deleted moment
	keyed         bool   // compacted: of each key the last record is there
	relaxed       bool   // acknowledged before it is synced: a power cut may take the end of a partition
	expires       moment // when it first got a retention that takes old segments
}

func (f *topicFact) mayLive(c cut) bool  { return f.made.mayBe(c) && !f.deleted.mustBe(c) }
func (f *topicFact) mustLive(c cut) bool { return f.made.mustBe(c) && !f.deleted.mayBe(c) }

// synced tells whether a record of a topic that was acknowledged must be there after a power cut: with a relaxed topic only if
// the broker has stopped cleanly since.
func (s *story) synced(w *writeFact, c cut) bool {
	return w.mustBe(c) && (!w.topic.relaxed || slices.ContainsFunc(s.stops, func(at int64) bool { return w.acked < at && at <= c.before }))
}

// txnFact is one transaction.
type txnFact struct {
	commit bool
	ended  moment
}

// writeFact is one batch.
type writeFact struct {
	moment
	topic     *topicFact
	partition int32
	values    []string
	base      int64  // the offset it was acknowledged with
	raw       []byte // of an idempotent producer
	pid       int64
	txn       *txnFact // nil without one
}

// offsetFact is one commit of an offset of the group.
type offsetFact struct {
	moment
	topic     *topicFact
	partition int32
	at        int64
	txn       *txnFact
}

// trimFact is one DeleteRecords.
type trimFact struct {
	moment
	topic     *topicFact
	partition int32
	before    int64
}

// step notes one request: when it is tried and, if it is taken, acknowledged.
func (s *story) step(w *wire, what string, m *moment, ask func() int16) {
	s.t.Helper()
	if c := s.try(w, m, ask); c != 0 {
		s.t.Fatalf("%s: %s", what, code(c))
	}
}

// try is step for requests that may fail.
func (s *story) try(w *wire, m *moment, ask func() int16) int16 {
	m.tried = s.clock.Add(1)
	c := w.until(ask)
	if c == 0 {
		m.acked = s.clock.Add(1)
	}
	return c
}

func (s *story) create(w *wire, name string, partitions int32, configs ...string) *topicFact {
	s.t.Helper()
	f := &topicFact{
		name: name, partitions: partitions, keyed: slices.Contains(configs, "cleanup.policy=compact"),
		relaxed: slices.Contains(configs, "millrace.durability=os") || slices.Contains(configs, "millrace.durability=interval"),
	}
	s.topics = append(s.topics, f)
	s.step(w, "create "+name, &f.made, func() int16 { return w.createTopic(name, partitions, configs...) })
	return f
}

func (s *story) delete(w *wire, f *topicFact) {
	s.t.Helper()
	s.step(w, "delete "+f.name, &f.deleted, func() int16 { return w.deleteTopic(f.name) })
}

func (s *story) write(p *producer, txn *txnFact, topic *topicFact, partition int32, values ...string) {
	s.t.Helper()
	f := &writeFact{topic: topic, partition: partition, values: values, txn: txn, pid: p.pid}
	if txn == nil {
		f.raw = batch(p.pid, p.epoch, p.seq[partitionName(topic.name, partition)], false, values...)
	}
	s.writes = append(s.writes, f)
	s.step(p.w, "produce to "+topic.name, &f.moment, func() int16 {
		base, c := p.send(topic.name, partition, values...)
		f.base = base
		return c
	})
}

func (s *story) move(w *wire, txn *txnFact, topic *topicFact, partition int32, at int64, ask func() int16) {
	s.t.Helper()
	f := &offsetFact{topic: topic, partition: partition, at: at, txn: txn}
	s.moves = append(s.moves, f)
	s.step(w, "commit offset", &f.moment, ask)
}

func (s *story) trim(w *wire, topic *topicFact, partition int32, before int64) {
	s.t.Helper()
	f := &trimFact{topic: topic, partition: partition, before: before}
	s.trims = append(s.trims, f)
	s.step(w, "delete records", &f.moment, func() int16 { return w.deleteRecords(topic.name, partition, before) })
}

func (s *story) begin() *txnFact {
	f := &txnFact{}
	s.txns = append(s.txns, f)
	return f
}

func (s *story) end(p *producer, f *txnFact, commit bool) {
	s.t.Helper()
	f.commit = commit
	s.step(p.w, "EndTxn of "+p.id, &f.ended, func() int16 { return p.end(commit) })
}

func (s *story) transactional(w *wire, id string, version int) *producer {
	s.t.Helper()
	s.ids = append(s.ids, id)
	return newProducer(w, id, version)
}

// tell is the story.
func (s *story) tell(c cluster) {
	w := dial(s.t, c)
	defer w.close()
	a := s.create(w, "a", 2)
	plain := newProducer(w, "", 0)
	s.write(plain, nil, a, 0, "p0", "p1", "p2")
	b := s.create(w, "b", 1)
	two := s.transactional(w, "two", 2)
	one := s.transactional(w, "one", 1)

	t1 := s.begin()
	s.write(two, t1, a, 0, "t1-a0")
	s.write(two, t1, a, 1, "t1-a1", "t1-a1'")
	s.write(plain, nil, a, 0, "p3")
	s.write(two, t1, b, 0, "t1-b0")
	s.move(w, t1, a, 0, 1, func() int16 { return two.commitOffset("a", 0, 1) })
	s.end(two, t1, true)

	t2 := s.begin()
	s.write(one, t2, a, 1, "t2-a1")
	s.write(one, t2, b, 0, "t2-b0")
	s.move(w, t2, a, 0, 2, func() int16 { return one.commitOffset("a", 0, 2) })
	s.end(one, t2, false)

	s.move(w, nil, b, 0, 1, func() int16 { return w.commitOffset("b", 0, 1) })
	s.trim(w, a, 0, 2)
	s.secondHalf(w, plain, one, two, a, b)
}

func (s *story) secondHalf(w *wire, plain, one, two *producer, a, b *topicFact) {
	c1 := s.create(w, "c", 1)
	s.write(plain, nil, c1, 0, "c1-0")
	t3 := s.begin()
	s.write(two, t3, c1, 0, "t3-c1")
	s.write(two, t3, a, 0, "t3-a0")
	s.move(w, nil, c1, 0, 7, func() int16 { return w.commitOffset("c", 0, 7) })
	s.delete(w, c1) // inside of t3
	delete(plain.seq, partitionName("c", 0))
	s.end(two, t3, true)
	c2 := s.create(w, "c", 1)
	s.write(plain, nil, c2, 0, "c2-0")

	t4 := s.begin()
	s.write(one, t4, b, 0, "t4-b0")
	s.write(one, t4, a, 1, "t4-a1")
	s.write(plain, nil, b, 0, "p4")
	s.move(w, t4, a, 0, 3, func() int16 { return one.commitOffset("a", 0, 3) })
	s.end(one, t4, true)

	t5 := s.begin()
	s.write(two, t5, a, 0, "t5-a0")
	s.write(two, t5, c2, 0, "t5-c2")
	s.move(w, t5, b, 0, 2, func() int16 { return two.commitOffset("b", 0, 2) })
	s.end(two, t5, false)
	s.trim(w, b, 0, 1)
	s.write(plain, nil, a, 0, "p5", "p6")

	t6 := s.begin() // stays open
	s.write(two, t6, a, 1, "t6-a1")
	s.write(two, t6, b, 0, "t6-b0")
}

// lives are the lives of a name that may be there after the cut, and whether one must.
func (s *story) lives(name string, c cut) (may []*topicFact, must bool) {
	for _, f := range s.topics {
		if f.name == name && f.mayLive(c) {
			may = append(may, f)
			must = must || f.mustLive(c)
		}
	}
	return may, must
}

func (s *story) names() []string {
	var out []string
	for _, f := range s.topics {
		if !slices.Contains(out, f.name) {
			out = append(out, f.name)
		}
	}
	return out
}
