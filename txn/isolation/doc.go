// Package isolation is what a partition needs to serve read_committed consumers: how far they may read (the last stable
// offset) and which of the records up to there belong to aborted transactions.
//
// An aborted transaction stays in the log. Its span goes into the transaction index of the segment that holds its marker,
// in Kafka's .txnindex format, and each answer to a read_committed fetch carries the spans that touch the served range. The
// consumer walks the batches in order: from a span's first offset on it drops the producer's transactional batches, until it
// meets the producer's abort marker. A transaction that wrote nothing to the partition has no span and no entry, only a
// marker (KAFKA-10702): an entry for it would hide the records of the same producer's next, committed transaction.
//
// Invariants:
//   - Entries are appended in the order of their markers, so LastOffset rises along the index and across segments.
//   - A list that [Collect] gives is complete for its range, sorted by first offset, and has nothing beyond the range.
//   - The last stable offset never passes the high watermark, an open transaction's first record, or the first record of a
//     transaction whose marker is not below the high watermark; it never falls while the high watermark does not.
//
// [Filter] is the reader's half of this, for tools and tests that read raw batches.
//
// The package is pure: no clock, no lock, no file.
package isolation
