// Package session is exactly once without a DSL: consume, process, produce and
// commit, in one transaction.
//
// [Session] is the whole loop. Its parts can be used alone:
//
//   - [Producer] sends records in transactions and commits offsets with them.
//     Opening one fences every earlier one with the same transactional id. A
//     source that keeps its position in the log uses just this.
//   - [Member] is a membership in a consumer group (the classic protocol),
//     driven by its owner: it says when to commit and join again, and nothing
//     happens behind the owner's back.
//   - [Reader] reads the committed records of assigned partitions and knows, for
//     each, how far it has come and where the log ends.
//   - [Cluster] is the connection they share, and answers questions about
//     topics and offsets.
//
// # What a commit means
//
// The records sent since the last commit and the offsets of what was consumed
// become visible together, or neither does. A process that dies in between
// leaves nothing behind that a committed reader would see. The three ways in
// which a commit can fail have three errors, because the caller has to do
// different things: [ErrAborted], nothing happened, go on from the last
// commit; [ErrFenced], somebody else is the owner now; [ErrUnknownOutcome], ask
// the group's committed offsets after [Producer.Renew].
//
// # Zombies
//
// A process that was paused and wakes up does not know that it lost its
// partitions. Two fences stop it, both checked by the brokers: its generation,
// which the group coordinator compares when the offsets join the transaction
// (KIP-447), and its producer epoch, which the successor with the same
// transactional id has raised.
//
// # Time
//
// A transaction has a deadline, [Producer.Deadline]; a commit that would come
// later is not tried, and no retry goes on past it. The coordinator aborts what
// stays open longer, and a record that was still on its way then must not end
// up in the next transaction: with transaction version 2 (KIP-890) the brokers
// see to that, and the package uses it wherever the cluster has it.
//
// The types of the client library underneath (franz-go) do not appear in the
// interface.
package session
