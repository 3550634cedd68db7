package coord

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/txn/coordinator"
)

// Describe shows one transactional id; found is false when the log does not hold it. In Prepare… it names only the
// partitions whose marker is not durable yet. A code other than 0 comes from a coordinator that is not there.
func (t *Transactions) Describe(txnID string, done func(d coordinator.Described, found bool, code int16)) {
	t.rt.ForKey(txnID).Do(func(response any) {
		switch r := response.(type) {
		case Failure:
			done(coordinator.Described{}, false, r.Code)
		case coordinator.Described:
			r.Partitions = t.unfinished(r)
			done(r, true, 0)
		default:
			done(coordinator.Described{}, false, 0)
		}
	}, func(m *txnMachine, _ int64, to Token) Output {
		return txnOutput(m.Describe(coordinator.Token(to), txnID))
	})
}

// unfinished leaves out the partitions where the decision under way is carried out.
func (t *Transactions) unfinished(d coordinator.Described) []TopicPartition {
	t.mu.Lock()
	c := t.running[decisionKey{id: d.ID, producerID: d.ProducerID, epoch: d.Epoch, commit: d.State == coordinator.PrepareCommit}]
	t.mu.Unlock()
	if c == nil || d.State != coordinator.PrepareCommit && d.State != coordinator.PrepareAbort {
		return d.Partitions
	}
	return c.unfinished()
}

// List shows the transactional ids that the filter takes, in order. It fails as a whole when one of the shards can not
// answer.
func (t *Transactions) List(f coordinator.ListFilter, done func(all []coordinator.Described, code int16)) {
	var mu sync.Mutex // owns what follows
	var all []coordinator.Described
	var code int16
	left := len(t.rt.shards)
	for _, s := range t.rt.shards {
		s.Do(func(response any) {
			mu.Lock()
			switch r := response.(type) {
			case Failure:
				code = r.Code
			case []coordinator.Described:
				all = append(all, r...)
			}
			left--
			last := left == 0
			mu.Unlock()
			if !last {
				return
			}
			if code != 0 {
				all = nil
			}
			slices.SortFunc(all, func(a, b coordinator.Described) int {
				return cmp.Or(strings.Compare(a.ID, b.ID), cmp.Compare(a.ProducerID, b.ProducerID))
			})
			done(all, code)
		}, func(m *txnMachine, nowMs int64, to Token) Output {
			return txnOutput(m.List(nowMs, coordinator.Token(to), f))
		})
	}
}
