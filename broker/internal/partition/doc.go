// Package partition is one partition of a topic: its log, what is known of its producers, and its watermarks.
//
// # The life of a batch
//
// Append validates the batch outside of any lock. Then, under the append lock: sequence and epoch are checked (a repeat is answered
// with its first offsets), an open transaction is asked for where one is needed, base offset and leader epoch are patched into the
// caller's bytes, one write puts them behind the log, and the producers' state takes them in. The handle of the flusher is marked
// dirty, and that is all: no hop to another goroutine, no copy of the records, no allocation for each of them.
//
// The batch is in the log then, but for nobody to see. A flush (group commit, package flush) syncs all that came meanwhile, moves the
// durable offset, and with it the watermarks:
//
//	log start <= last stable offset <= high watermark <= durable offset <= log end
//
// Await answers when the high watermark has passed an offset. So an acknowledgement, a fetch, a committed offset, and whatever a
// coordinator answers speak only of what a power cut cannot take back. A duplicate waits for its original in the same way.
//
// A topic may choose a relaxed durability (relaxed.go). Then the high watermark follows the log end, and the durable offset comes
// after it, within the bounds that the topic sets. A power cut takes back a suffix of the log then; whatever must not be taken back
// all the same waits with AwaitDurable.
//
// # Reading
//
// Read, the look-ups and Marks take no lock that an append holds: the watermarks are published as one immutable value, the log's
// readers are lock-free. Read looks for where batches start, never at the batches: it gives sections of files for sendfile.
//
// # Transactions
//
// The first transactional batch of a producer opens its transaction here, and only with the coordinator's word: a [Guard], taken
// before the coordinator is asked and void once a marker was appended since (KAFKA-14884: else an abort that slips in between leaves
// a transaction that nobody will ever end, and holds the last stable offset for good). The last stable offset stays before the first
// record of every transaction that is open, or whose marker is not durable yet: a decision that can be lost is none.
//
// # Failures
//
// A write that fails (disk full, I/O error, short) is taken back and refused with KAFKA_STORAGE_ERROR; reads go on, and so do appends
// as soon as the disk lets them. If it can't be taken back, or when an fsync fails, the kernel's word is worth nothing any more: the
// partition goes offline, everyone who waits is told, and the file is not asked again until the next Open has compared it with what
// the journal knows. Damage found by Open (commitlog.ErrDamaged) keeps one partition out of service, not the broker.
//
// # Roles
//
// [Leader] and [Follower] differ in who may append and in what the high watermark follows. A single node has only leaders.
package partition
