// Package compact decides what compaction leaves of a log: of each key the last record, and of everything around the records what
// readers, producers and the transactions' isolation still need. It is pure: batches and a time go in, batches come out.
//
// # A round
//
// [Choose] looks at the sizes of a log's segments and tells whether a round is due and how far it may go. An [Index] reads the
// batches that no round has seen yet and notes for each key the last offset, in a [Table] of bounded size; if that gets full the
// round ends where it got full, and the next one goes on there. A [Filter] then reads everything from the beginning of the log
// and gives back what stays of each batch:
//
//   - A record that is not the last of its key, or has none, goes.
//   - A tombstone stays until its batch's delete horizon (KIP-534), which the round that first keeps it sets to its own time and
//     delete.retention.ms, once and for all.
//   - Records of aborted transactions never enter the table, so that they hide nothing, and go.
//   - The marker of a transaction stays as long as a batch of the transaction was there when the round read it. After that it gets
//     a delete horizon, and goes when that has passed.
//   - A batch without records goes too, unless it is the last one of a producer that is still known, whose sequence it tells, or the
//     last one of the round, whose end it tells. Of these the header stays.
//
// What stays of a batch keeps offsets, sequences and leader epoch. All this is Kafka's behaviour, checked batch for batch against
// logs that Apache Kafka 4.4.0 cleaned.
//
// # Invariants
//
//   - What a read_committed reader finds as the latest value of each key is the same before and after, at every step of a round.
//   - Nothing at or behind the end of the round changes.
//   - A round whose input was the output of a round with the same end, at the same time, changes nothing.
package compact
