// Package flush makes appended batches durable for all partitions of a broker: group commit, and the journal that tells a
// restart what had been made durable.
//
// # Group commit
//
// A partition that has appended marks its [Handle] dirty. Workers take dirty handles from one queue and call Flush, which
// syncs the partition's files and then runs everyone who waited there. While a Flush runs, further appends only set a
// flag; when it ends, the handle goes to the back of the queue once more. So one fsync carries all that arrived during the
// one before, the load decides the size of a group, and nobody waits for a timer. Files of different partitions are synced
// at the same time, up to Options.Parallel: journaling file systems commit such syncs together.
//
// There is no barrier between "rounds": a barrier would make each partition wait for the slowest file, and it buys
// nothing, as a request that touches several partitions waits for each anyway.
//
// # The journal
//
// After each sync the partition notes its durable offset here: one write of 33 bytes to a file that all partitions share,
// without an fsync of its own. The journal is synced a second after the first unsynced note, when a log start moves, and at
// the end. What it says is exact after the process was killed (the kernel has the write), and a lower bound after the power
// went; it never says too much, as a note is written only after the sync it speaks of. That gives recovery its rule:
//
//   - below the noted offset every batch was durable and may have been acknowledged. A batch that does not check there is
//     damage. Nothing is cut, nothing is deleted, the partition stays offline and says where.
//   - above it the first batch that does not check is a torn tail: no sync had covered it, or none that the journal knows.
//     It is cut.
//
// The limit of the rule, stated: damage that the disk does, in the same power cut, to bytes that were synced in the last
// second before it, is taken for a torn tail. An fsync of the journal with every group commit would close even that, at
// the price of a second fsync in a row for every acknowledgement.
//
// The journal also holds each partition's checkpoint (up to where its indexes and its newest producer snapshot are
// complete and durable: recovery reads from there on, so that a clean stop is just a checkpoint at the very end and needs no
// marker file), and the log start offset, which DeleteRecords may not answer before it is durable.
//
// Every record carries its own checksum and states a fact that stays true, so a reader skips what does not check and goes
// on behind it; the last record of a kind counts, for offsets that only grow the greatest.
//
// # Failures
//
// A target whose sync failed answers for it itself (package partition goes offline and never asks that file again). A note
// that can't be written is dropped: the lower bound stays lower. A journal whose fsync failed is never synced again and
// believed: the whole state goes into a new file.
package flush
