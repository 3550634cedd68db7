// Package sim runs the whole broker, clients that speak its protocol, and what goes wrong with machines, networks and disks, on
// one goroutine in virtual time. A seed decides everything: the same seed gives the same run, byte for byte.
//
// What runs is production's own: broker.Start, the handlers, both coordinators, partitions, logs and group commit, unchanged. They
// stand on four things that the simulation replaces through package seam: a clock that drives (a clock.Driver: what would be a
// goroutine is a step in the heap), a file system in memory that crashes as disks do, a source of ids, and the place of the
// listeners, where frames come in as bytes. Clients and faults are steps in the same heap, so every interleaving of what waits can
// happen: a handler that parks, a flush that is under way, an effect of a coordinator, a timer. A flush may let time pass in the
// middle of its sync, with other steps inside it. What the simulation can not show is what needs two processors at once: that is
// for the race detector.
//
// # What is checked
//
// The oracle knows what each client sent and was told; a view of each partition reads the durable part of its log after every step
// and says what must follow from the batches alone. Together they hold, after every step:
//
//   - log start <= last stable offset <= high watermark <= log end, none goes back, not over restarts either;
//   - offsets are dense, sequences and epochs of each producer follow each other, a record is there once;
//   - the last stable offset is the first record of an open transaction, as the batches have it;
//   - an acknowledged record is durable, where the broker said; every durable batch is the same after each restart;
//   - records of a transaction share one fate, it is what their client was told, nothing is committed that its owner did not ask
//     for, and no batch is in another transaction than its own;
//   - readers of committed data are served each committed record once, in order, and no other.
//
// When faults have ended, everything that clients began must come to an end.
package sim
