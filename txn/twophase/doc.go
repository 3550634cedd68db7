// Package twophase commits a transaction of a database and a transaction of the log
// together: both or neither, whatever crashes when.
//
//	c, err := twophase.OpenStoreDecides(ctx, cluster, postgres.New(pool, postgres.Options{}), twophase.Options{TransactionalID: "orders"})
//	err = c.Do(ctx, func(tx *twophase.Txn[postgres.Querier]) error {
//		if _, err := tx.Store.Exec(ctx, "INSERT INTO orders VALUES ($1, $2)", id, cents); err != nil {
//			return err
//		}
//		return tx.Send(ctx, session.Record{Topic: "orders", Partition: session.ByKey, Key: id, Value: order})
//	})
//
// Two transactions can not commit at the same instant. So one of them decides, by
// committing, and the other has promised before that it will follow: it has prepared,
// and can neither be lost nor change its mind until it is told. Whoever comes after a
// crash asks the side that decides, and tells the other. There are two directions, with
// the same program on top:
//
//   - [OpenStoreDecides]: the log prepares, the store decides. The store needs no more
//     than ordinary transactions. The log must offer two-phase commit (KIP-939), as
//     Millrace does with transaction.two.phase.commit.enable: the transaction has no
//     timeout, and a new incarnation can take it over without ending it.
//   - [OpenLogDecides]: the store prepares (PREPARE TRANSACTION), the log decides. The
//     log needs no more than ordinary transactions of version 2, so Apache Kafka 4 will
//     do. The store must be able to prepare.
//
// The first is the one to choose where it is possible: in a crash nothing stays locked
// in the database. What waits is the log: until the program is back, no read_committed
// consumer gets past the open transaction. In the second the prepared rows stay locked,
// and readers of the log wait for the transaction timeout at most. A program of the
// second kind opens its committer before it touches its tables: it could wait for itself.
//
// # What a crash leaves
//
// When the program, the broker, the database, or all of them at once, crash at:
//
//	the store decides       store          log                 recovery
//	StepWork                open: gone     nothing             -
//	StepWritten             open: gone     open                state is another one: abort
//	StepPrepared            open: gone     open, all acked     state is another one: abort
//	  commit of the store, the answer lost: one of the rows above and below; the claim
//	  waits for the transaction on its way, and then reads which
//	StepDecided             committed      open, all acked     state is this one: commit
//	  EndTxn, the answer lost              open or committed   commit, or nothing is open
//	StepDone                committed      committed           -
//
//	the log decides         store          log                 recovery
//	StepWork                open: gone     nothing             -
//	StepWritten             open: gone     open                InitProducerId aborts
//	  PREPARE, the answer lost: gone or prepared               no decision: roll back
//	StepPrepared            prepared       open, all acked     InitProducerId aborts, no decision: roll back
//	  EndTxn, the answer lost: prepared    aborted or committed: the decision tells
//	StepDecided             prepared       committed           decision: commit prepared
//	StepDone                committed      committed           -
//
// "state" is the [PreparedState] of the last transaction that the store has committed,
// in a cell beside the data. "decision" is the last record under the transactional id in
// a compacted topic: it names the store's prepared transaction and is a part of the
// transaction of the log, so it is there when that one is committed and not otherwise.
//
// # Zombies
//
// A program that was paused wakes up and does not know that it was replaced. In the log
// it is fenced by its epoch, which rises with every incarnation and every end of a
// transaction. That is not enough: it could commit in the store what its successor has
// aborted in the log.
//
// When the store decides, its cell names the owner, and the update of the cell that is
// part of each commit compares it. A successor first takes the epoch, then the cell, and
// only then reads the state. The owner that is compared is written by the same update:
// one that is only read fences nobody.
//
// When the log decides, a late prepared transaction can never commit: it has no decision,
// and its EndTxn is refused. But it stays, and holds locks. The zombie itself rolls it
// back when it is told that it is fenced; if it crashes before, [Committer.Sweep] does.
// Recovery lists what is prepared and then asks the log whether it is still the owner; so
// what is on the list is never of a newer incarnation, whose transaction may still commit.
//
// # What it does not do
//
// One transaction at a time for each transactional id; several ids work beside each
// other. Restoring the database or the log from a backup breaks the agreement of the two,
// and so does an operator who ends a prepared transaction by hand the wrong way round.
// A transaction of the log that has prepared and whose program never comes back waits
// for ever: the broker's log tells, and millrace txn resolve ends it.
package twophase
