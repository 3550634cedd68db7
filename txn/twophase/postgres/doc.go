// Package postgres is PostgreSQL as the store of a two-phase commit with the log, in
// either direction. See package twophase for what that is and when to choose which.
//
// # PostgreSQL decides
//
// [Store] keeps one row for each transactional id in a table, millrace_two_phase by
// default. A transaction updates that row beside its data; that the row still has this
// incarnation as its owner is a condition of the UPDATE, so two incarnations meet at the
// row's lock and the older one's transaction updates nothing, which fails it. It works
// the same at every isolation level. Nothing of PostgreSQL has to be configured.
//
// # The log decides
//
// The transaction is prepared (PREPARE TRANSACTION) under a name that tells the
// transactional id, the transaction of the log, and a count. This needs
// max_prepared_transactions above 0, which PostgreSQL does not have by default, and it
// forbids what PREPARE TRANSACTION forbids: temporary tables, LISTEN and NOTIFY, cursors
// WITH HOLD. A prepared transaction holds its locks, and keeps VACUUM from cleaning up,
// until it is finished; pg_prepared_xacts shows it. The role that finishes must be the
// one that prepared, or a superuser.
//
// The program gets a [Querier], which is a pgx transaction without Commit and Rollback.
package postgres
