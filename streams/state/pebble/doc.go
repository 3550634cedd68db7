// Package pebble keeps the state of stream jobs in Pebble, the storage engine of
// CockroachDB. It is for stores that are large: it holds tens of millions of keys at
// a rate at which goleveldb has given way to its compactions, and shares one cache
// between all stores of the process. It is a package of its own so that only those
// who use it link it:
//
//	app.Run(ctx, cluster, streams.StateDir(dir), streams.Engine(pebble.New(pebble.Options{})))
//
// or, for one store, streams.StoreIn. The figures are in docs/streams/state.md.
//
// # What is promised, and by what
//
// The rule is that of package state: an image equals the fold of its changelog up to
// its position. Rows and position are one batch of Pebble, synced before Apply
// returns, and a batch is whole in the write-ahead log or not there. After a crash
// Pebble plays the log back to its last whole batch; it cuts a torn tail, which is an
// earlier position and as good as any, and refuses a log that goes on behind damage.
// Blocks of tables carry checksums, checked when they are read. Whatever Pebble calls
// corruption is [state.ErrCorrupt] here: the store is rebuilt, never repaired.
//
// Pebble ends the process on some failures and panics on others. Here neither leaves
// this package: the image fails from then on, with [state.ErrNoRoom] where that was
// the cause, and can be opened again at once.
package pebble
