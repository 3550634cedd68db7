package coord

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/txn/coordinator"
)

// tell says that a transaction waits for a decision that only its two-phase commit can make. It is no fault of the broker,
// but readers wait with it.
func (t *Transactions) tell(n coordinator.Notice) {
	t.o.Logger.Warn("a transaction without a timeout waits for its decision; read_committed consumers wait behind it",
		"transactional_id", n.ID, "producer_id", n.ProducerID, "epoch", n.Epoch, "age", time.Duration(n.AgeMs)*time.Millisecond,
		"kept", n.Kept, "partitions", len(n.Partitions), "see", "millrace txn resolve")
}

// Undecided shows the open transactions that have no timeout, in the order of their ids. It fails as a whole when one of the
// shards can not answer.
func (t *Transactions) Undecided(done func(all []coordinator.Notice, code int16)) {
	var mu sync.Mutex // owns what follows
	var all []coordinator.Notice
	var code int16
	left := len(t.rt.shards)
	for _, s := range t.rt.shards {
		s.Do(func(response any) {
			mu.Lock()
			switch r := response.(type) {
			case Failure:
				code = r.Code
			case []coordinator.Notice:
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
			slices.SortFunc(all, func(a, b coordinator.Notice) int { return cmp.Compare(a.ID, b.ID) })
			done(all, code)
		}, func(m *txnMachine, nowMs int64, to Token) Output {
			return txnOutput(m.Undecided(nowMs, coordinator.Token(to)))
		})
	}
}
