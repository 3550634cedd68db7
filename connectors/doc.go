// Package connectors holds the contract between Millrace and the stores
// outside the log: what a sink must promise so that its store is exactly once,
// what a source must promise so that the log is, and how the guarantee that can
// honestly be stated is computed from class, configuration and isolation.
//
// # The rule
//
// The position of a sink is kept in the store, in the same atomic step as the
// data it stands for. A consumer group hands out the work and shows the lag, but
// its committed offsets decide nothing: at take-over the runner asks the store
// where to go on. So a crash at any point leaves a store whose data and position
// agree, and the log re-delivers exactly what is missing.
//
// # The fence
//
// An owner that was paused, cut off or believed dead may wake and write again.
// Each take-over therefore carries a [Fence]: an epoch that grows with every
// take-over, and the id of the one claim it came from. The epoch is the offset of
// the owner's claim record in a one-partition topic (acks=all), which is monotone
// on every cluster of the Kafka protocol. Three rules make it hold:
//
//  1. A commit must WRITE the cell that a take-over writes. A fence that is only
//     read does not fence under snapshot isolation: the two transactions touch
//     different cells and both commit.
//  2. Epoch and owner are both compared. Two owners may end up with the same
//     epoch after the log of claims was lost; their ids differ.
//  3. Applying a batch must be idempotent and monotonic: the commit compares the
//     position it starts from, so a batch never lands twice or after a later one.
//
// A stale owner that claims late wins the cell for a moment, in any scheme. It
// does no harm: it starts from the store's own position, and the rightful owner
// finds out at its next commit, claims again and goes on from that position.
//
// # Classes
//
// What a store can do decides its [Class], and each class has its own small
// interface. This release has the [Transactional] class, [TxSink]: data,
// positions and fence in one transaction of the store. Sources are read through
// [Source] and [Reader]; their positions are written to the log in the
// transaction of their records.
//
// The runner (connectors/runner) does everything that is the same for every
// store; a connector holds the store's calls and nothing else. A connector is
// finished when it passes the kit in connectors/conntest.
package connectors
