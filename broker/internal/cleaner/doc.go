// Package cleaner decides when the partitions of a broker lose what their topics do not keep: segments by age and size, and in
// compacted topics all but the last record of a key. Package partition knows how.
//
// # One goroutine
//
// A [Cleaner] is one goroutine, asleep between two rounds. In a round of retention it asks every partition; in a round of
// compaction it asks every compacted one how dirty it is and compacts those that are due, dirtiest first. A partition where
// nothing has to be done costs a look at a few numbers in memory and no I/O. Nothing here holds a lock that an append or a
// fetch waits for.
//
// # Which time it is
//
// Retention believes no clock that jumps. See guard: a broker whose clock is set a year ahead goes on counting the time that
// really passed, and says so, for a day; who meant it restarts the broker.
//
// # Failures
//
// A partition that can't be cleaned is named with its reason in [Cleaner.Status] until a later round succeeds, and logged once for
// each new reason. Every round tries again. Others are not held up.
package cleaner
