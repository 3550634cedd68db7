// Package group is the group coordinator as a pure state machine: consumer
// groups of the classic protocol and the offsets that groups commit. One
// [Machine] keeps the groups of one partition of `__consumer_offsets`; the
// runtime in package coord appends what it says, replays it and answers when it
// is durable.
//
// # Two kinds of state
//
// Durable state is what the log says: per group the last GroupMetadata record
// (generation, protocol, leader, members with their assignments), the committed
// offsets, and the offsets of transactions that are still open. Only
// [Machine.Replay] and [Machine.ReplayMarker] change it, so that a machine that
// served requests and a machine that loaded the log are the same; [Machine.Dump]
// writes it down and the tests compare.
//
// Soft state is the running protocol: who waits for a JoinGroup or SyncGroup
// answer, member ids that were given out but not used yet, session and rebalance
// deadlines, the generation that has no assignment yet. It lives in [classic],
// is lost with the process, and nothing in it was promised to anybody: a member
// that was told a generation without an assignment has not got work to do, and
// joins again. After a load the members of the last record are there again with
// fresh session deadlines, so that those who live go on without a rebalance and
// those who died expire.
//
// A change of soft state that must not happen when the append fails is staged:
// it runs when Replay meets the record it belongs to. All others happen at once.
//
// # States of a classic group
//
//	Empty ──join──▶ PreparingRebalance ──all joined or timeout──▶ CompletingRebalance ──leader's sync──▶ Stable
//	  ▲                ▲    │                                          │                                 │
//	  │                └────┼──────── member joins, leaves, expires ───┴─────────────────────────────────┘
//	  └──── no member left ─┘ (from any state)
//
// A group that has neither members, member ids in waiting, offsets nor a record
// is forgotten; asked for, it is Dead.
//
// # Offsets
//
// A committed offset belongs to the topic id it was committed for: offsets of a
// deleted topic are hidden from that moment and never show up under a topic
// created later with the same name. Of two commits for a partition the one with
// the higher log offset wins, also when the other is part of a transaction whose
// marker comes later: a load of a compacted log, which keeps the last record of a
// key, could not decide otherwise.
//
// Offsets that nobody needs any more are removed (KIP-211, retention.go): of a group
// that was left, the retention after its last member was gone, which the record of the
// empty group tells also after a restart; of one that only stores offsets, the retention
// after each commit; of consumers at work, only what they do not subscribe to. What an
// open transaction has an offset for stays. With its last offset an empty group goes too.
//
// # Invariants
//
//   - A group instance id belongs to the last member that joined with it; all
//     earlier members of that instance are fenced.
//   - A member that waits for an answer does not expire (it can not send
//     heartbeats), except one that was never in a generation and waits longer
//     than [Options.NewMemberTimeout].
//   - Every token is answered once: by its own outcome, or because its member
//     left, expired, was replaced or asked again.
//   - Records of other kinds of groups (KIP-848 consumer groups, share groups,
//     streams groups) are kept by their key and change nothing else.
package group
