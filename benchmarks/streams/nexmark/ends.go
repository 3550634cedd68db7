package nexmark

import (
	"encoding/binary"

	"github.com/millrace/millrace/core/partition"
)

// endMs is how far behind the last event the bids of Ends come.
const endMs = 3_600_000

// Ends are bids long after the first n events, one for each partition of the topic: their time closes every window with an
// event in it, so that all windows have their final results. They are for auctions that never were, and count as bids like
// all others: the oracle knows them.
func (c Config) Ends(n int64, partitions int32) []*Bid {
	all := make([]*Bid, partitions)
	for id, left := int64(-1), partitions; left > 0; id-- {
		p := partition.ForKey(Key(id), partitions)
		if all[p] == nil {
			all[p] = &Bid{Auction: id, Bidder: id, Channel: "end", URL: "end", DateTime: c.TimeMs(n) + endMs}
			left--
		}
	}
	return all
}

// Key is an id as a record's key: 8 bytes, as Kafka's LongSerializer writes it.
func Key(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) }
