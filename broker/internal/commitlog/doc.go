// Package commitlog is the log of one partition on disk: segments of record batches, the indexes beside them, look-ups by
// offset, time and leader epoch, and recovery. It is synchronous and passive: no goroutine, no clock, no opinion on what a batch
// means. Package partition drives it.
//
// # Files
//
// Names and formats are Apache Kafka's (verified against files of 4.4.0), so its tools read our folders and we read its:
//
//	<20 digits>.log        batches as they came, one after the other; the digits are the first one's offset
//	<20 digits>.index      8 bytes an entry: int32 last offset of a batch, relative to the digits; int32 where the batch starts
//	<20 digits>.timeindex  12 bytes: int64 the greatest timestamp so far; int32 relative last offset of the batch that holds it
//	<20 digits>.txnindex   34 bytes: an aborted transaction whose marker is in the segment; no file without one
//	<20 digits>.txnsum     our own: the checksum that the .txnindex has not
//	<20 digits>.snapshot   the producers' state as of the offset in the name, with a checksum
//	leader-epoch-checkpoint, partition.metadata   text
//
// An index entry is made when more than index.interval.bytes lie between its batch and the one of the entry before, so never
// for a segment's first batch. Only the batches and the topic id are irreplaceable; all else is derived and built again when
// it is missing or does not fit. Whether it fits is checked where that costs nothing: an entry that a look-up follows must point
// to a batch that ends at the entry's offset.
//
// # Who may do what when
//
// The caller's append lock guards every change: [Log.Append], rolling, the log start, the leader epochs. An append is one write
// at an explicit position behind the last batch, and then an atomic store of the new size. Indexes of the segments that are not
// finished live in memory, in slices that readers look into without a lock, and a roll creates one empty file and nothing else.
//
// Everything slow is the flush's, in two steps of a [Sync]. Data syncs the log files, oldest first, then the folder's names, and
// with that everything up to its End is durable. Indexes then completes the index files of sealed segments and writes the
// snapshot of their successors' beginning, and every CheckpointBytes also those of the active segment. It may fail for want of
// space: nothing depends on it but the length of the next recovery, and the next flush tries again.
//
// Readers take no lock. They look at an immutable list of segments behind an atomic pointer, and hold a reference to each segment
// whose file they use; a deleted segment's files go when the last reference does.
//
// # What recovery may believe
//
// The recovery journal (package flush) and the snapshots are witnesses of what was durable. The journal is written after a sync,
// a snapshot after everything it speaks of is synced. So below the greater of the two, every batch was durable, and may have
// been acknowledged. From there the rule is this:
//
//   - A batch below that does not check, or is missing, is damage: [DamageError]. Open fails, and not a byte has been changed.
//   - Above it, the first batch that does not check ends the log. It is a torn tail: no acknowledgement stands for it. The rest of
//     its file is cut off and later segments are removed, newest first, and that is made durable before anything is appended.
//   - Valid batches above are kept, and synced before Open returns. Unacknowledged is not refused: their senders may try again,
//     and are recognised.
//   - A log of which nothing was durable, and that begins behind the log start which the journal knows (0 for none), has lost the
//     segments before: names of files outlive a power cut in any order. All of it is removed, as behind a torn tail.
//
// To check means: length and format fit, the checksum is right, and the base offset, which is outside of the checksum, is the
// next one, unless the topic is compacted, whose gaps are all below. The limit of the rule is the journal's: after a power cut it
// may lag by a second, and the disk's own damage to a batch of that second is taken for a torn tail.
//
// Recovery reads from the newest snapshot that is not behind the checkpoint, both made a few MB apart; below that only names and
// sizes are looked at. A clean stop is a checkpoint at the log's end, so nothing is read. The same path serves a folder that
// Kafka left, of which the journal knows no more than the log start: it is checked from its first batch. Whoever brings a folder here
// notes its log start in the journal first (flush.ChangeJournal).
//
// # Deleting from the front
//
// [Log.SetLogStart] hides records at once; whole segments below it go. But producers must be known for longer than their batches
// are kept, so a segment goes only when the snapshot of its successor's beginning is durable. Index files are removed before the
// log file: an index without a log is a sign of damage.
package commitlog
