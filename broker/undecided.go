package broker

import (
	"context"
	"time"
)

// Undecided is an open transaction that has no timeout: it takes part in a two-phase commit, and whoever leads that commit has
// not decided yet. Until then no read_committed consumer gets past it.
type Undecided struct {
	TransactionalID string
	// ProducerID and Epoch are those with which it began, by which the other side of the commit names it.
	ProducerID int64
	Epoch      int16
	Began      time.Time
	// Kept says that a later incarnation of its producer has taken it over and not decided it either.
	Kept       bool
	Partitions int
}

// Undecided lists the open transactions without a timeout, in the order of their ids, for a monitoring system: how many there
// are, and since when. It fails while the coordinator loads its log.
func (b *Broker) Undecided(ctx context.Context) ([]Undecided, error) {
	all, err := ask(ctx, "undecided transactions", b.server.Txns.Undecided)
	if err != nil {
		return nil, err
	}
	list := make([]Undecided, len(all))
	for i, n := range all {
		list[i] = Undecided{
			TransactionalID: n.ID, ProducerID: n.ProducerID, Epoch: n.Epoch, Began: time.UnixMilli(n.StartMs),
			Kept: n.Kept, Partitions: len(n.Partitions),
		}
	}
	return list, nil
}
