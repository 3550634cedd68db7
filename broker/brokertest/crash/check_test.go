package crash

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// check compares a broker on what a power cut left with the notes, and says what does not fit. It also uses the broker,
// so that what is there serves.
type check struct {
	*story
	cut
	w    *wire
	here map[string]*topicFact // which life of a name is there
	seen map[*txnFact]bool     // transactions of which something is visible, or must have been
	sent map[window]int32      // records of the idempotent producers
}

// window names the sequence of one producer in one partition.
type window struct {
	partition string
	pid       int64
}

func (w *writeFact) window() window { return window{partitionName(w.topic.name, w.partition), w.pid} }

func (s *story) holds(c cluster, at cut, hopeless func() bool) error {
	k := &check{story: s, cut: at, w: dial(s.t, c), here: map[string]*topicFact{}, seen: map[*txnFact]bool{}, sent: map[window]int32{}}
	defer k.w.close()
	k.w.hopeless = hopeless
	for _, id := range s.ids { // ends what is open
		if c := k.w.until(func() int16 { return (&producer{w: k.w, id: id}).init() }); c != 0 {
			return fmt.Errorf("InitProducerId of %q: %s", id, code(c))
		}
	}
	for _, f := range []func() error{k.topicsFit, k.offsetsFit, k.windowsFit, k.serves} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// topicsFit finds out which topics there are and whether their records fit.
func (k *check) topicsFit() error {
	for _, name := range k.names() {
		may, must := k.lives(name, k.cut)
		_, c := k.w.offset(name, 0, -1, false)
		if c == kerr.UnknownTopicOrPartition.Code {
			if must {
				return fmt.Errorf("topic %s is lost", name)
			}
			continue
		}
		if c != 0 {
			return fmt.Errorf("topic %s: %s", name, code(c))
		}
		err := fmt.Errorf("topic %s should not be there", name)
		for _, life := range may {
			if err = k.lifeFits(life); err == nil {
				k.here[name] = life
				break
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *check) lifeFits(f *topicFact) error {
	seen := map[*txnFact]bool{}
	for p := range f.partitions {
		if err := k.partitionFits(f, p, seen); err != nil {
			return fmt.Errorf("%s-%d: %w", f.name, p, err)
		}
	}
	for txn, visible := range seen {
		if was, known := k.seen[txn]; known && was != visible {
			return fmt.Errorf("%s: a transaction is torn: visible in one topic, not in another", f.name)
		}
		k.seen[txn] = visible
	}
	return nil
}

// partitionFits walks through what was written, in order, and through what is there.
func (k *check) partitionFits(f *topicFact, partition int32, seen map[*txnFact]bool) error {
	start, got, err := k.read(f.name, partition)
	if err != nil {
		return err
	}
	if err := k.startFits(f, partition, start); err != nil {
		return err
	}
	if f.keyed {
		return k.keyedFits(f, partition, got, seen)
	}
	all := got
	hole := ""
	sent := map[window]int32{}
	for _, w := range k.writes {
		if w.topic != f || w.partition != partition {
			continue
		}
		values := w.values
		if w.acked != 0 && w.base < start {
			values = values[min(int64(len(values)), start-w.base):]
		}
		if len(values) == 0 { // deleted by DeleteRecords
			if w.txn == nil {
				sent[w.window()] += int32(len(w.values))
			}
			continue
		}
		is := len(got) >= len(values) && slices.Equal(got[:len(values)], values)
		if is {
			got = got[len(values):]
		}
		if err := k.writeFits(w, is, seen); err != nil {
			return fmt.Errorf("%w; there is %q from %d", err, all, start)
		}
		switch {
		case is && hole != "":
			return fmt.Errorf("%s is lost, and %q behind it is not; there is %q from %d", hole, w.values, all, start)
		case !is && w.mustBe(k.cut) && (w.txn == nil || w.txn.commit && w.txn.ended.mustBe(k.cut)): // the topic is relaxed
			hole = fmt.Sprintf("%q", w.values)
		}
		if is && w.txn == nil {
			sent[w.window()] += int32(len(w.values))
		}
	}
	if len(got) > 0 {
		return fmt.Errorf("%q is too much, or out of order; there is %q from %d", got, all, start)
	}
	maps.Copy(k.sent, sent)
	return nil
}

func (k *check) writeFits(w *writeFact, is bool, seen map[*txnFact]bool) error {
	may, must := w.mayBe(k.cut), k.synced(w, k.cut)
	if w.txn != nil {
		may = may && w.txn.commit && w.txn.ended.mayBe(k.cut)
		must = w.mustBe(k.cut) && w.txn.commit && w.txn.ended.mustBe(k.cut)
		if was, known := seen[w.txn]; known && was != is {
			return fmt.Errorf("the transaction of %q is torn", w.values)
		}
		seen[w.txn] = is
	}
	switch {
	case must && !is:
		return fmt.Errorf("%q was acknowledged and is lost", w.values)
	case is && !may:
		return fmt.Errorf("%q is visible and must not be", w.values)
	}
	return nil
}

func (k *check) startFits(f *topicFact, partition int32, start int64) error {
	least, most := int64(0), int64(0)
	for _, t := range k.trims {
		if t.topic == f && t.partition == partition {
			if t.mustBe(k.cut) {
				least = t.before
			}
			if t.mayBe(k.cut) {
				most = t.before
			}
		}
	}
	if f.expires.mayBe(k.cut) {
		most = math.MaxInt64
	}
	if start < least || start > most {
		return fmt.Errorf("starts at %d, want %d to %d", start, least, most)
	}
	return nil
}

// read returns the committed values of a partition, once its last stable offset is its end.
func (k *check) read(topic string, partition int32) (start int64, values []string, err error) {
	start, c := k.w.offset(topic, partition, -2, false)
	if c != 0 {
		return 0, nil, fmt.Errorf("ListOffsets: %s", code(c))
	}
	end, err := k.stable(topic, partition)
	if err != nil {
		return 0, nil, err
	}
	aborted := map[int64]bool{}
	for at := start; at < end; {
		row := k.w.fetch(topic, partition, at, true)
		batches := decode(row.RecordBatches)
		if now, _ := k.w.offset(topic, partition, -2, false); row.ErrorCode == kerr.OffsetOutOfRange.Code && now > start {
			return k.read(topic, partition) // retention came in between
		}
		if row.ErrorCode != 0 || len(batches) == 0 {
			return 0, nil, fmt.Errorf("fetch at %d of %d: %s, %d batches", at, end, code(row.ErrorCode), len(batches))
		}
		pending := row.AbortedTransactions
		for _, b := range batches {
			for len(pending) > 0 && pending[0].FirstOffset <= b.last() {
				aborted[pending[0].ProducerID], pending = true, pending[1:]
			}
			if b.control() {
				delete(aborted, b.ProducerID)
				continue
			}
			if b.Attributes&(1<<4) != 0 && aborted[b.ProducerID] {
				continue
			}
			values = append(values, b.from(at)...)
		}
		at = batches[len(batches)-1].last() + 1
	}
	return start, values, nil
}

// stable waits until the last stable offset has reached the end.
func (k *check) stable(topic string, partition int32) (int64, error) {
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		lso, c1 := k.w.offset(topic, partition, -1, true)
		end, c2 := k.w.offset(topic, partition, -1, false)
		if c1 != 0 || c2 != 0 {
			return 0, fmt.Errorf("ListOffsets: %s, %s", code(c1), code(c2))
		}
		if lso == end {
			return end, nil
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("the last stable offset stays at %d, the end is %d", lso, end)
		}
		<-tick.C
	}
}

// offsetsFit compares the group's offsets: those of a transaction move with its records.
func (k *check) offsetsFit() error {
	for _, name := range k.names() {
		f, partitions := k.here[name], int32(1)
		if f != nil {
			partitions = f.partitions
		}
		for p := range partitions {
			fits := []int64{-1}
			for _, o := range k.moves {
				if f == nil || o.topic != f || o.partition != p {
					continue
				}
				switch must, may := k.moved(o); {
				case must:
					fits = []int64{o.at}
				case may:
					fits = append(fits, o.at)
				}
			}
			at, err := k.w.committedOffset(name, p)
			if err != nil {
				return err
			}
			if !slices.Contains(fits, at) {
				return fmt.Errorf("the group's offset of %s-%d is %d, want one of %d", name, p, at, fits)
			}
		}
	}
	return nil
}

// moved tells whether an offset must be committed, and whether it may be: with the records of its transaction, where
// there are any left to see.
func (k *check) moved(o *offsetFact) (must, may bool) {
	if o.txn == nil {
		return o.mustBe(k.cut), o.mayBe(k.cut)
	}
	if visible, known := k.seen[o.txn]; known {
		return visible, visible
	}
	return o.txn.commit && o.txn.ended.mustBe(k.cut), o.txn.commit && o.txn.ended.mayBe(k.cut)
}

// windowsFit sends the idempotent producer's last acknowledged batch again, and then a new one.
func (k *check) windowsFit() error {
	last := map[window]*writeFact{}
	for _, w := range k.writes {
		if w.txn == nil && w.pid >= 0 && !w.topic.relaxed && w.mustBe(k.cut) && k.here[w.topic.name] == w.topic {
			last[w.window()] = w
		}
	}
	for at, w := range last {
		next := k.sent[w.window()]
		row := k.w.produce(9, "", w.topic.name, w.partition, w.raw)
		if row.ErrorCode != 0 || row.BaseOffset != w.base {
			return fmt.Errorf("%v: %q again: %s at %d, it was acknowledged at %d", at, w.values, code(row.ErrorCode), row.BaseOffset, w.base)
		}
		row = k.w.produce(9, "", w.topic.name, w.partition, batch(w.pid, 0, next, false, "next"))
		if row.ErrorCode != 0 {
			return fmt.Errorf("%v: the producer's next batch, sequence %d: %s", at, next, code(row.ErrorCode))
		}
	}
	return nil
}

// serves runs a transaction over everything that is there.
func (k *check) serves() error {
	if c := k.w.until(func() int16 { return k.w.createTopic("after", 1) }); c != 0 {
		return fmt.Errorf("create a topic afterwards: %s", code(c))
	}
	k.here["after"] = &topicFact{name: "after", partitions: 1}
	p := &producer{w: k.w, id: "afterwards", version: 2}
	if c := k.w.until(p.init); c != 0 {
		return fmt.Errorf("InitProducerId afterwards: %s", code(c))
	}
	for name, f := range k.here {
		for i := range f.partitions {
			if _, c := p.send(name, i, "after"); c != 0 {
				return fmt.Errorf("produce to %s-%d afterwards: %s", name, i, code(c))
			}
		}
	}
	if c := p.commitOffset("after", 0, 5); c != 0 {
		return fmt.Errorf("offset afterwards: %s", code(c))
	}
	if c := p.end(true); c != 0 {
		return fmt.Errorf("EndTxn afterwards: %s", code(c))
	}
	for name, f := range k.here {
		for i := range f.partitions {
			_, values, err := k.read(name, i)
			if err != nil || len(values) == 0 || values[len(values)-1] != "after" {
				return fmt.Errorf("%s-%d afterwards: %q, %v", name, i, values, err)
			}
		}
	}
	if at, err := k.w.committedOffset("after", 0); err != nil || at != 5 {
		return fmt.Errorf("offset afterwards: %d, want 5, %w", at, err)
	}
	return nil
}
