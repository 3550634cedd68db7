package crash

import (
	"fmt"
	"slices"
)

// keyedWrite is one record of a compacted partition: its write and its place in it.
type keyedWrite struct {
	w     *writeFact
	value string
}

// keyedFits compares what is left of a compacted partition with what was written. Records may be missing where a later one of
// the same key is there; none may be there that must not, none twice, none out of order.
func (k *check) keyedFits(f *topicFact, partition int32, got []string, seen map[*txnFact]bool) error {
	var all []keyedWrite
	for _, w := range k.writes {
		if w.topic == f && w.partition == partition {
			for _, v := range w.values {
				all = append(all, keyedWrite{w, v})
			}
		}
	}
	is := make([]bool, len(all))
	at := 0
	for _, v := range got {
		for at < len(all) && all[at].value != v {
			at++
		}
		if at == len(all) {
			return fmt.Errorf("%q is too much, or out of order; there is %q", v, got)
		}
		is[at] = true
		at++
	}
	later := map[string]bool{} // keys of which a later record is there
	present := map[*writeFact]bool{}
	sent := map[window]bool{} // windows of which a later batch is there
	for i, one := range slices.Backward(all) {
		key := keyOf(one.value)
		if is[i] || !later[key] {
			if was, known := present[one.w]; known && was != is[i] && !k.thinned(one.w, all, is) {
				return fmt.Errorf("the batch of %q is torn; there is %q", one.w.values, got)
			}
			present[one.w] = present[one.w] || is[i]
			if err := k.writeFits(one.w, is[i], seen); err != nil {
				return fmt.Errorf("%w: %q; there is %q", err, one.value, got)
			}
		}
		later[key] = later[key] || is[i]
	}
	for _, w := range slices.Backward(k.writes) {
		if w.topic != f || w.partition != partition || w.txn != nil {
			continue
		}
		if sent[w.window()] || present[w] || w.mustBe(k.cut) {
			sent[w.window()] = true
			k.sent[w.window()] += int32(len(w.values))
		}
	}
	return nil
}

// thinned tells whether a batch may have lost a record to compaction: a later record of the same key is there.
func (k *check) thinned(w *writeFact, all []keyedWrite, is []bool) bool {
	for i, one := range all {
		if one.w == w && !is[i] && !slices.ContainsFunc(all[i+1:], func(l keyedWrite) bool { return keyOf(l.value) == keyOf(one.value) }) {
			return false
		}
	}
	return true
}
