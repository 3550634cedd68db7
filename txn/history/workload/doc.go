// Package workload makes histories: it lets clients loose on a cluster and writes down
// what they do and see, for package history to judge.
//
// Each client is one of four kinds: transactional under version 2 of the protocol, under
// version 1, under version 2 as a static member of groups, or an idempotent producer
// without transactions. They send and poll, mostly several steps in one transaction,
// over all partitions; now and then one aborts, reads other partitions, joins a group,
// is dropped without a goodbye, or commits as a zombie whose place another has taken.
// Records are numbers, of which each is sent once. An observer asks for watermarks and
// committed offsets all the while. Bank and Copy do less, and need no history.
//
// Rules that the verdict rests on:
//
//   - an operation's outcome is OK or Fail only where that is certain. An error of a
//     commit is Info; a transaction that never asked for its commit has failed
//   - after anything but OK a reader goes back to where the operation began, and after
//     Info the client is dropped and begins again as another process
//   - in the end each client must work once more, so that what hangs is found, then
//     everything is read from the start by two readers, see [history.Drain]
//
// The clients use franz-go. Disturbing the cluster meanwhile (killing it, cutting its
// network) is up to the caller, and the point of the exercise.
package workload
