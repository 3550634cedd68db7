package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/txn/coordinator"
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
	type answer struct {
		all  []coordinator.Notice
		code int16
	}
	answers := make(chan answer, 1)
	b.server.Txns.Undecided(func(all []coordinator.Notice, code int16) { answers <- answer{all, code} })
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("broker: undecided transactions: %w", ctx.Err())
	case a := <-answers:
		if err := kerr.ErrorForCode(a.code); err != nil {
			return nil, fmt.Errorf("broker: undecided transactions: %w", err)
		}
		list := make([]Undecided, len(a.all))
		for i, n := range a.all {
			list[i] = Undecided{
				TransactionalID: n.ID, ProducerID: n.ProducerID, Epoch: n.Epoch, Began: time.UnixMilli(n.StartMs),
				Kept: n.Kept, Partitions: len(n.Partitions),
			}
		}
		return list, nil
	}
}
