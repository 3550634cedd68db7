// Package conntest is the kit that every connector passes. It kills a connector
// at each step, loses replies, freezes an owner and lets it wake after a
// successor has gone on, delivers batches twice and over other boundaries,
// moves the group's offsets, recreates the topic; after each of these the store
// must hold exactly the records below the position it reports.
//
// That one sentence is the oracle, and it needs no knowledge of the store:
//
//	rows of the store == records of the log below the stored position, each once
//
// A row without its position would be written again, a position without its rows
// would lose them, and a zombie's row belongs to no position at all.
//
// The cases come in two groups. Those named contract/... drive the sink alone,
// step by step, and need no cluster. Those named run/... drive it through the
// real runner on the cluster that the caller passes in; the kit starts none. A
// kit without a cluster runs the first group only.
//
// # What a connector's author writes
//
// A [Store]: how to open one more client of the store, and how to read back what
// is stored; see the example of RunSink. The records have a string key and a JSON
// object as value, {"id": "...", "key": "...", "n": 1}, of which the store keeps
// at least id and key.
//
// Inside its calls a connector announces the steps with connectors.Reach, so
// that the kit can stop it in the middle of a transaction, which is where the
// faults are.
//
// Random choices come from a seed that is printed with every failure. That the
// kit finds what it is there to find is tested too: its own tests run it against
// sinks that are broken in the known ways and expect the named case to fail.
package conntest
