// Package operator is what a task is made of: typed nodes that push records to
// the next node by pointer.
//
// K and V stay types to run time. A stream of the DSL is an Outlet[K, V]: a
// list of constructors that make, for one task, the typed Sinks of the nodes
// behind it. Building a task calls the constructors from the sources on, once;
// after that a record travels through plain method calls, and a chain of
// stateless nodes allocates nothing.
//
// Rules for a node:
//
//   - A record belongs to the node that pushes it. The receiver may read it
//     during the call, must not change it and must not keep it; what it sends
//     on it writes into a record of its own.
//   - An error from Push means that the task is over. What a user function or
//     a serde does wrong goes to the node's Site first, which asks the error
//     chain and may turn it into a retry or a skipped record.
//   - Whatever a node remembers is in its store or in a Clock; both are part
//     of what a transaction commits.
//
// Null: a record says for key and value whether they are null. For types that
// have a nil (pointers, slices, maps, interfaces) null and nil are the same
// and user functions get nil. For other types a null value never reaches a
// function over values: it passes map-values as null, and filter, flat-map and
// map leave it out. A null key reads as the zero key.
package operator
