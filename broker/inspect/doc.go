// Package inspect reads the data folders of brokers, ours and Apache Kafka's, without a broker: it shows what is in them, says
// what is wrong with them, and puts right what can be put right. It is what the commands "millrace log dump", "verify" and
// "repair" are made of.
//
// It is a second reader on purpose. The broker's own log (broker/internal/commitlog) reads as little as it can and mends what
// is derived; this one reads everything, from nothing but the bytes, and compares: every batch with its checksum and its place,
// every index with the batches, every snapshot with a replay of the log, the coordinators' records with the rules of their
// state machines, and the recovery journal with all of it. What the formats mean is decided by the packages that own them:
// core/record for batches, txn/producer and txn/isolation for what is derived from them, package flush for the journal.
//
// # Reading
//
// [Open] takes a data folder or the folder of one partition. [Partition.Walk] gives its content in the order of the file
// names as [Item] values: batches, records, index entries, snapshots, texts. Their JSON is stable and is the format of
// "millrace log dump --output json". Nothing is ever written, no lock is taken, memory is bounded by the largest batch: a
// folder may be looked at while a broker runs on it. Such a reader can meet a batch that is just being written.
//
// # Verifying
//
// [Data.Verify] gives [Finding] values, each with its topic-partition, file, position and how bad it is:
//
//   - [Damage]: something that was durable, and may have been acknowledged, is gone or wrong.
//   - [TornTail]: bytes behind the last good batch that no acknowledgement stands for. The next start cuts them off.
//   - [Rebuildable]: derived data that disagrees with the batches. Repair, or the broker, makes it anew.
//   - [Note]: worth knowing, and no fault. A folder with nothing but notes is clean.
//
// What was durable is said by witnesses: the recovery journal, producer snapshots (written only after what they speak of was
// synced), Kafka's recovery points. A bad batch below the highest witness is damage. Above it, it is a torn tail in a folder
// with a journal, as for the broker's own recovery. Where no journal exists, a bad batch with good ones behind it is damage:
// only at the very end can an interrupted write explain it.
//
// # Repairing
//
// [Data.Repair] rebuilds indexes, transaction indexes, snapshots, the leader epoch file and partition.metadata from the batches,
// each by a new file that is synced and renamed over the old one. Records are touched only by [Data.Truncate], which first puts
// a copy of every file that it changes beside the folder. Both refuse while a broker has the folder.
package inspect
