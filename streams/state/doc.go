// Package state keeps the state of stream tasks: ordered maps of bytes that
// survive a crash and never hold a write of a transaction that did not commit.
//
// There are two contracts. [Store] is what an operator sees: an ordered map it
// reads and writes while it processes records. [Image] is what an engine
// implements: the committed contents on disk or in memory, changed only by one
// atomic, durable step that carries rows and the changelog position together.
// An [Overlay] stands between them and makes the one out of the other.
//
// # The rule
//
// The contents of an image always equal the fold of the committed changelog
// from its start up to the position stored in the image. Nothing else may be
// assumed after a crash, and nothing else is needed: a restart reads the
// changelog from that position on.
//
// It holds because of how a write travels:
//
//  1. Put and Delete change only the overlay's active layer, in memory.
//  2. Before the commit, [Overlay.Log] gives each identity that changed once,
//     in key order, to the changelog, inside the transaction.
//  3. Once the commit is confirmed, and not before, [Overlay.Commit] moves the
//     active layer to the settled layer, together with the position that
//     follows the last logged record.
//  4. [Overlay.Flush] applies the settled layer and its position to the image in
//     one atomic step. Flushes are less frequent than commits, as the changelog
//     already holds everything; a crash in between costs only the replay of a
//     short tail.
//
// On abort, [Overlay.Abort] drops the active layer. On an unknown outcome the
// whole overlay is dropped and the tail of the changelog decides.
//
// # What is logged
//
// The identity of a row is its key bytes; windowed and versioned views put the
// window or the time into the key. A key put and deleted in one transaction
// logs a tombstone, as an older value may be in the changelog. A row removed
// by [Store.Expire] logs a tombstone when a committed value exists, so that a
// compacted changelog does not grow for ever, and nothing when the row was born
// in the same transaction.
//
// # Ownership
//
// Stores, overlays and images belong to one task and are not safe for
// concurrent use.
package state
