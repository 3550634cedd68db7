// Package history decides from what clients did and saw whether a log kept its
// promises. It is the checker of Jepsen's workload for Kafka, with the rules for
// transactional offsets, watermarks and groups that one leaves out; whether the log is
// ours, Apache Kafka or another one makes no difference, as all it looks at is a list
// of events. The package is pure: no clock, no network, no goroutine. Package workload
// below it makes histories, and millrace verify runs both.
//
// # The history
//
// A process is a client with one operation at a time: sends, polls, both of them in a
// transaction, a new assignment. An event is the start of an operation or its end: OK,
// Fail (it certainly has no effect) or Info (nobody knows). Records are numbers, and in
// a partition each is sent once. So whatever a poll returns names the operation that
// sent it, and from offsets told to writers and readers the order of each partition
// follows, gaps included: where an offset holds nothing that counts, there is a marker,
// or a record of an aborted transaction. See [Parse] for the text form.
//
// # What counts as committed
//
// A transaction that ended OK does, one that failed does not. One of unknown outcome
// does if a reader saw any of its records, and then all of its records and all of its
// offsets must be there; that is how torn transactions come out. If the history ends
// with a [Drain], an operation which says that everything was read to the end, then
// an undecided transaction of which nothing was seen is not committed, and its offsets
// must not have moved either.
//
// # What is checked
//
// [Classes] lists all findings with their meaning, and testdata holds for each a small
// history that has it and one that is like it and has not. In short:
//
//   - a place holds one record and a record has one place
//   - readers see what is committed, all of it, nothing else, in order, and no later
//     than at the drain
//   - a partition's order agrees with each process's order and with real time
//   - reading is acyclic: if a saw something of b, b saw nothing of a
//   - a group consumes each record in one committed transaction, whoever its members
//     are, and its committed offset is where such a transaction put it
//   - watermarks do not go back; the last stable offset does not pass an open
//     transaction, and none stays open
//
// Appends of open transactions interleave, and a poll reads a range and no snapshot.
// Circles of writes (G0, and with reads in between) and partly visible transactions
// within one poll are therefore what the protocol allows; they are counted, not
// condemned. So are skips and steps back of a group's member between two polls: the
// partition was elsewhere meanwhile, and the checks of the group as a whole hold.
//
// # Limits
//
// Lost writes assume that somebody reads each partition from its start, as the drain
// does. Groups start at the first record. Records must not be deleted or compacted
// while a history is made. A check of real time needs one clock: events of several
// machines have to be put in order by whoever merges them.
package history
