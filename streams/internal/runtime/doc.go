// Package runtime runs a topology on a cluster, exactly once. It is the only
// part of package streams that has goroutines, clocks and sockets.
//
// # Who owns what
//
// A worker is one goroutine that owns everything it works on: a membership in
// the application's group, one committed reader, one transactional producer
// (KIP-447) and the tasks assigned to it, with their stores. Nothing of it is
// shared, so nothing in the loop locks. A process may have several workers, and
// an application several processes.
//
// Beside it is its keeper, a goroutine that owns the stores on which no task runs:
// those being restored, and copies of stores whose tasks run elsewhere. A store goes
// from one to the other closed or complete. Tasks go on while the keeper restores,
// and while the worker joins the group again.
//
// # The loop
//
// Records are read ahead per partition and processed one at a time: within a
// task the one with the lowest timestamp first, and in case of a tie the one of
// the source named first. A partition with nothing to offer holds its task back
// until a fetch sent after the other's record arrived has found nothing either;
// so topics that were filled before give the same output in every run.
//
// Questions about stores are answered by whoever owns them, between two records, from
// what is committed.
//
// Every commit interval all tasks of a worker commit together: the changes of
// all stores go to their changelogs, the positions of all partitions join the
// transaction, the transaction commits, and only then the stores accept what
// they were told. Before partitions are given up the same happens.
//
// # Taking over
//
// In this order, and the order matters: the group's offsets, stable, so that no
// undecided transaction of a former owner can still move them; then the ends of
// the changelogs, undecided records included; then the changelogs are read as a
// committed reader up to these ends; then the first record is processed.
//
// # Failures
//
// Whatever a commit did not confirm is forgotten: tasks and stores are dropped
// as they are, the producer takes a new epoch when its state is in doubt, and
// the tasks are taken over again as if somebody else had owned them. There is
// no second path for "almost certain" cases; the one path is the one that every
// start uses. Errors of user code end the application, as the topology's error
// chain has decided by then that it must.
//
// A worker that another process replaced (same instance id) ends the
// application with session.ErrFenced.
package runtime
