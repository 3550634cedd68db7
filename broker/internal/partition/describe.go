package partition

import (
	"cmp"
	"slices"

	"github.com/millrace/millrace/txn/producer"
)

// Size is what the log holds: bytes of batches, and segments.
func (p *Partition) Size() (bytes int64, segments int) { return p.log.Size(), len(p.log.Segments()) }

// Producers shows what the partition knows of its producers, in the order of their ids.
func (p *Partition) Producers() []producer.State {
	p.mu.Lock()
	states := p.producers.table.States(nil)
	p.mu.Unlock()
	slices.SortFunc(states, func(a, b producer.State) int { return cmp.Compare(a.ProducerID, b.ProducerID) })
	return states
}

// LastOffset is that of a producer's last record, -1 if it has none.
func (p *Partition) LastOffset(producerID int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.producers.table.LastOffset(producerID)
}
