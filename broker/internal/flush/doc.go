// Package flush makes appended batches durable for all partitions of a broker: group commit, and the journal that tells a
// restart what had been made durable.
//
// # Group commit
//
// A partition that has appended marks its [Handle] dirty. Workers take dirty handles from a queue and call Flush, which
// syncs the partition's files and then runs everyone who waited there. While a Flush runs, further appends only set a
// flag; when it ends, the handle goes to the back of the queue once more. So one fsync carries all that arrived during the
// one before, the load decides the size of a group, and nobody waits for a timer. Files of different partitions are synced
// at the same time, up to Options.Parallel: journaling file systems commit such syncs together.
//
// There is no barrier between "rounds": a barrier would make each partition wait for the slowest file, and it buys
// nothing, as a request that touches several partitions waits for each anyway.
//
// # Append journals
//
// Each file has its own sync, and with a thousand partitions that is all the disk does. So small appends are made durable
// together: a round takes the dirty handles that there are, writes the bytes that each has appended since its last flush into one
// append journal, and syncs that one file. Rounds follow each other at once, what comes during one is in the next; those who
// wait are told while the next is under way. The partition's own file has the same bytes from its append on, unsynced, and readers
// read there. A flush goes to the partition's own files, beside the rounds, when it is large, when a segment has begun or
// ended, and when a checkpoint is due.
//
// An append journal is written over and over, so that its sync has no metadata to write: it is full, another one is begun, and
// everyone who has bytes in it is asked to sync his own file. When all have, it is free. If some can't, it stays as it is and
// another file takes the next turn; with four that are needed appends wait for their own files, as without journals.
//
// A start after anything but a clean stop begins with the redo, before anybody opens a partition: the bytes go to where they
// belong, and are synced there. A piece is left out when its topic or its segment is gone, and when the recovery journal
// knows that it was durable in its own file: only such a segment is ever compacted, and that note is durable before (see
// Settle). What a torn append journal has of a round that was not acknowledged does no harm: these bytes were appended, just
// there.
//
// The end of the order of things, for one partition: what lies below its durable offset is in its file, synced, or in an append
// journal, synced, behind everything before it that is only there.
//
// # The journal
//
// After each sync of its own files the partition notes its durable offset here: one write of 33 bytes to a file that all partitions share,
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
// believed: the whole state goes into a new file. An append journal whose fsync failed is not used again, nor any other until the
// next start: every file is synced on its own, which is what those who waited for it get.
package flush
