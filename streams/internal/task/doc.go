// Package task is the seam between the topology a user wrote and whatever
// drives it: the runtime with its consumers and transactions, or a test.
//
// A task is one sub-topology on one partition. It is pure: no goroutine, no
// clock, no socket, no file. Records go in through Process, in the order the
// driver chose (lowest timestamp first over the task's partitions); output
// records leave through Env.Emit and state through the stores of Env.Store,
// both within the call. A task therefore behaves the same under a broker and
// under virtual time, and everything it did since the last commit can be
// thrown away by dropping it.
//
// Rules of the seam:
//
//   - One goroutine at a time. Nothing in a task locks.
//   - A task lives only as long as its transaction goes well. After an abort,
//     a fencing or a crash the driver closes it, drops the uncommitted writes
//     of its stores and makes a new one: what a task remembers outside its
//     stores is exactly what Progress says, and that is handed back in
//     Env.Progress.
//   - Byte slices given in either direction are valid during the call only.
//   - An error from Process ends the task: the failure has been through the
//     application's error chain, which chose to fail.
package task
