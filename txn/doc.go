// Package txn is the transaction protocol on one page. The rules themselves live in
// the packages below it:
//
//   - txn/coordinator: one transactional id after the other, from InitProducerId to
//     the completed transaction; a pure machine over the log __transaction_state
//   - txn/producer: what a partition remembers of producers; sequences, epochs, markers
//   - txn/isolation: the last stable offset, aborted ranges, what read_committed sees
//   - txn/session: consume, process, produce, commit, for users
//
// # What a transaction is
//
// A producer with a transactional id writes to several partitions, and to the offsets
// of a consumer group, and then all of it counts or none. Records go to their
// partitions at once. What decides is one record in the coordinator's log; what tells
// each partition is a marker, a control record behind the data. A read_committed
// consumer reads up to the last stable offset, the first record that is not decided,
// and drops what an abort marker ends.
//
//	producer            coordinator (log)            partitions
//	InitProducerId ───▶ Empty                                          who am I: producer id, epoch
//	Produce ─────────────────────────────────────▶ first record
//	                    Ongoing(partition) ◀────── may it?             added, or verified
//	                                    ─────────▶ appended
//	EndTxn ───────────▶ PrepareCommit                                  decided, once this is durable
//	                                    ─────────▶ COMMIT marker
//	       ◀─────────── answer                                         markers are appended
//	                    CompleteCommit  ◀───────── markers durable
//
// # States
//
//	absent
//	  │ InitProducerId
//	  ▼         first partition              EndTxn(commit)                  markers durable
//	Empty ────────────────────▶ Ongoing ───────────────────▶ PrepareCommit ────────────────▶ CompleteCommit
//	  │                         │ │ ▲ │ one more partition      ▲
//	  │         InitProducerId, │ │ └─┘                         │
//	  │                 keeping ▼ │        EndTxn(commit)       │
//	  │                   ┌── Kept┼─────────────────────────────┘
//	  │                   └────▶│ │ EndTxn(abort), InitProducerId, timeout
//	  │ EndTxn(abort), version 2▼ ▼                           markers durable
//	  └──────────────────────▶ PrepareAbort ────────────────────────────────────────────────▶ CompleteAbort
//
// CompleteCommit and CompleteAbort go on as Empty does, and InitProducerId leads them
// back to it. Dead follows the three, when an id expires; the log has a tombstone then.
//
// Prepare… is the point of no return: after it the markers are written again and again,
// over restarts, until every partition has its own. A partition that was deleted is
// dropped from the transaction. txn/coordinator's state.go lists every edge.
//
// # Two-phase commit
//
// A client that says so when it asks for its producer id (InitProducerId 6, KIP-939)
// has transactions without a timeout. It has prepared as soon as its last Produce is
// acknowledged; the broker is not told. It then notes producer id and epoch with
// whoever decides, a database say. When it crashes, its next incarnation asks
// InitProducerId to keep the open transaction and is told its producer id and epoch:
// Kept. The incarnation has an epoch of its own, so whatever an earlier one still asks
// for is fenced, and it can do nothing but decide. txn/twophase is the client side of it.
//
// # Two versions
//
// Version 1: the client announces each partition, the epoch stays from one transaction
// to the next. A request that the network holds back for long can therefore end a later
// transaction (KAFKA-17754); nothing a broker does can mend that. What it can do:
// Complete… is durable before the next transaction's first append, and the leader of a
// partition asks the coordinator before the first append of a transaction.
//
// Version 2 (KIP-890): the leader adds the partition on its own, and each EndTxn raises
// the epoch. Markers carry the raised epoch and must be above the partition's current
// one (KIP-1228), so a marker, a record or an EndTxn of an earlier transaction is
// refused for its epoch. The version is that of the request, EndTxn 5 and Produce 12,
// not of the cluster: both kinds of clients live side by side.
//
// The last epoch for data is 32766. Its marker has 32767, and the answer of EndTxn, or
// the next InitProducerId, names a new producer id with epoch 0.
//
// # When answers leave
//
// Every answer waits until what it tells of is durable. EndTxn is answered when the
// decision is durable and all markers are appended; a partition that can not take its
// marker delays the answer by a second at most. Requests of the next transaction that
// come before Complete… wait for it, a second at most, instead of being sent away with
// CONCURRENT_TRANSACTIONS.
//
// # Where this differs from Apache Kafka 4.4
//
//   - A commit after the transaction was aborted by its timeout: Kafka answers
//     INVALID_TXN_STATE (version 2) or PRODUCER_FENCED (version 1), both fatal to the
//     client although nobody took its id. Here TRANSACTION_ABORTABLE (EndTxn 5) or
//     UNKNOWN_PRODUCER_ID (below), on which clients abort and go on. For the same
//     reason an abort of version 1 is answered NONE then, AddPartitionsToTxn and
//     AddOffsetsToTxn with UNKNOWN_PRODUCER_ID, TxnOffsetCommit with
//     TRANSACTION_ABORTABLE (UNKNOWN_PRODUCER_ID below version 4), Produce below
//     version 12 with UNKNOWN_PRODUCER_ID and the log start offset; from 12 on with
//     INVALID_PRODUCER_EPOCH as in Kafka, which clients of version 2 recover from.
//     Whoever was replaced by a newer producer is fenced as ever.
//   - After such an abort InitProducerId with the old epoch gives the next one, also
//     after a restart of the coordinator, where Kafka fences.
//   - InitProducerId over an open transaction waits for the abort; Kafka sends the
//     client away with CONCURRENT_TRANSACTIONS at once. So it is for the first
//     partition of the next transaction.
//   - EndTxn(abort) of the next transaction while the last is being completed waits;
//     Kafka answers PRODUCER_FENCED.
//   - An abort of nothing (version 2) writes PrepareAbort and CompleteAbort in one batch.
//   - EndTxn of a client that a newer producer replaced is PRODUCER_FENCED even while
//     that one's InitProducerId is not through; Kafka would hand it the next epoch.
//   - Timeouts fire when they are due; Kafka looks every ten seconds.
//   - Values in __transaction_state have three tags of their own, 1000 to 1002, in the
//     rare case that Kafka's fields do not tell the last epoch, the cause of an abort, or
//     the timeout behind a kept transaction. Kafka's readers pass over them.
//   - Two-phase commit: Kafka 4.4 gives transactions without a timeout and refuses to
//     keep one, UNSUPPORTED_VERSION (KAFKA-20739). Here it is kept.
package txn
