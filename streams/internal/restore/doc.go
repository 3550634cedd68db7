// Package restore brings stores up to date from their changelogs: once, before
// their tasks process anything, or for ever, as copies of stores whose tasks run
// elsewhere.
//
// # Complete
//
// The caller has asked, in this order, for the group's stable offsets and then
// for the end of each changelog, undecided records included. Whatever a former
// owner managed to commit lies before that end; whatever it left undecided does
// too, and is decided when a committed reader passes it. So a store is complete
// when a committed reader has reached the end, and not earlier.
//
// # Continued
//
// A restore continues from the position in the store. It begins from nothing
// when that position does not belong to this log: another topic id, an epoch
// that ended earlier (the log lost its tail and grew again), an end or a start
// on the wrong side. It also begins from nothing when the store was away for
// longer than the log keeps its tombstones, because rows deleted meanwhile
// would never be seen to go.
//
// Stopping a restore at any point leaves stores that obey the rule of package
// state: contents and position belong together. The same holds for a copy, so a
// copy that is promoted is nothing special: it is a store whose restore has a
// short way to go.
//
// # Ownership
//
// A Set reads for any number of jobs on one connection. Set and jobs belong to
// one goroutine; [Prepare] may run on another one before a job is added.
package restore
