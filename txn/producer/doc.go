// Package producer is what one partition knows about the idempotent and transactional producers that write to it. It
// decides whether a batch is new, a duplicate, out of order or fenced, and whether the end of a transaction may be written.
//
// For each producer id there is the current epoch, the last five batches under it, the first offset of the open transaction
// if there is one, and the coordinator's epoch of the last marker. All of it follows from the log: replaying the batches and
// markers of the partition in order gives the same table, and a snapshot only spares the replay of the older part. The rule
// for callers is Check, append, Apply, under one lock; nothing else changes the table.
//
// Invariants:
//   - Check and CheckMarker change nothing, so a failed append needs no undo.
//   - An epoch never falls through a batch or marker that was checked.
//   - A producer with an open transaction is never forgotten, by expiry or by a snapshot.
//   - The window holds batches of the current epoch only, and survives a snapshot whole. (Kafka's snapshot keeps one batch,
//     so that after a restart a retry of the four before it is refused as out of order.)
//   - A new epoch's first sequence is 0. A producer that is not known may start anywhere (KIP-360).
//
// The package is pure: no clock, no lock, no file. It follows KIP-98, KIP-360, KIP-890 and KIP-1228.
package producer
