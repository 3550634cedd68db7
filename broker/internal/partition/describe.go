package partition

import (
	"cmp"
	"slices"

	"github.com/millrace/millrace/txn/producer"
)

// Producers shows what the partition knows of its producers, in the order of their ids.
func (p *Partition) Producers() []producer.State {
	p.mu.Lock()
	states := p.producers.table.States(nil)
	p.mu.Unlock()
	slices.SortFunc(states, func(a, b producer.State) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	return states
}
