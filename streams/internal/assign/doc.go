// Package assign decides which worker runs which tasks, and who keeps copies of
// their stores.
//
// The unit is a number: all tasks with that number, of every sub-topology, go
// to one worker. What a task writes to a repartition topic under its own key
// space then often stays with the worker, and one consumer and one producer
// serve all of them.
//
// # The goal
//
// The assignment is balanced (shares differ by at most one) and sticky (a unit
// stays where it was as long as balance allows), because a unit that moves
// takes the restore of its state with it. It is a pure function of the members
// and what they claim, so every member would compute the same as the leader.
//
// # The way there
//
// Two rules stand between the goal and what is assigned now. A unit whose state
// is far from its new worker stays where it can be processed; the new worker
// warms up, which means that it makes a copy, and says so when the copy is close
// (KIP-441). And a unit that a living member holds is given to nobody else
// before that member has let go of it, which it does when it sees an assignment
// without the unit (KIP-429): so members go on with what they keep while the
// group rebalances, and a move takes two generations.
//
// # Copies
//
// With standbys, each unit with state has copies in other processes than the one
// that runs it, in other racks where there are some. A process is what shares a
// state folder: two workers of it are one place.
//
// Members speak the bytes of Kafka's consumer protocol, so that brokers and
// tools see topics and partitions; claims and shares travel in its user data,
// behind a version byte.
package assign
