// Package coordinator is the transaction coordinator as a pure machine: a request
// goes in, records and a reply come out. The protocol itself is on one page in
// package txn.
//
// A [Machine] holds the transactional ids of one partition of
// __transaction_state. A handler (InitProducerID, AddPartitions, EndTxn,
// Completed, Tick) looks at the state and returns an [Output]; it changes nothing
// that a record would change. The caller appends the records and feeds them back
// through Replay, the only mutator, which is also how the log is loaded. So the
// state of a running machine is the state of its replayed log, and a failed append
// needs no undo.
//
// What is not in the log is small and can be lost: requests that wait for a
// completion under way (park.go), and the order of deadlines. Both are rebuilt or
// answered by whoever owns the machine.
//
// Invariants:
//
//   - A state is entered only from a state that it declares as a predecessor
//     (state.go).
//   - Markers of an id are written only between Prepare… and Complete…, one
//     decision at a time; Complete… follows only when every marker is durable.
//   - The epoch of a producer id never goes down and data never carries 32767:
//     that one is left for the marker that fences the last data epoch.
//   - A kept transaction (two-phase commit, KIP-939) has two identities: that of its
//     records, which its markers fence, and that of its owner, which no earlier
//     incarnation has. Only the owner decides, and both rise with the decision.
//   - No output depends on the order of a map.
//
// Time is an argument, in milliseconds. A Machine is not safe for concurrent use.
package coordinator
