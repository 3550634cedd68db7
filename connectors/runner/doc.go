// Package runner runs connectors: it does for every store what is the same for
// every store, so that a connector holds nothing but the store's calls.
//
// # Sinks
//
// A [Sink] runs one or more tasks. Each task is one goroutine that owns one
// connectors.TxSink, its partitions, and the batch it is filling; nothing else
// touches them. A consumer group hands the partitions to the tasks, of this
// process and of others.
//
// For each partition it is given, a task
//
//  1. claims: one record with a random owner id goes to a one-partition topic
//     with acks=all; its offset is the epoch. One claim serves all partitions
//     that arrive together. A claim that is not confirmed is made again;
//  2. opens: the store raises its fence to that epoch and owner and returns the
//     position it holds;
//  3. checks that position against the log: another topic id, a log start above
//     it, a log end below it, or another leader epoch stops the connector with an
//     error that says so;
//  4. reads from there. The group's committed offset is ignored; it is written
//     afterwards, so that common tools show the lag.
//
// Batches are cut by count, bytes and time, and committed one at a time. While a
// commit is being tried nothing more is polled; the client's fetch buffers fill
// and the brokers are left alone. That is all the back-pressure there is, and
// memory stays bounded by the buffers.
//
// # What a failed commit leads to
//
//	ErrRetry            nothing happened: the same batch again, with back-off
//	rejects             the batch without them; they go to the store's table of rejects in the same transaction
//	ErrUnknownOutcome   claim and open again, compare the position: applied, or the same batch again, or start from there
//	ErrStale            the same as ErrUnknownOutcome
//	ErrFenced           ask the group coordinator: still a member: claim and open again; else let go (state FENCED)
//	ErrConfig           stop (state FAILED)
//	anything else       treated as ErrUnknownOutcome
//
// Assignment is cooperative: partitions that stay are not interrupted, so a
// rebalance costs a claim and an open for the partitions that move and nothing
// for the others. Safety never rests on a clean revocation: an owner that did
// not hear of it is fenced by the store.
//
// # Sources
//
// A [Source] reads each part of a connectors.Source with a transactional
// producer of its own. Records and position go into one transaction; at the
// start the producer id is initialised first, which fences a predecessor and
// finishes its transaction, and only then is the position read.
package runner
