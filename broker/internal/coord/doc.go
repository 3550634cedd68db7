// Package coord hosts the two coordinators, groups and transactions, on
// partitions of their internal topics.
//
// A [Shard] is one [Machine] over one partition. A request runs a handler of the
// machine under the shard's lock; the handler returns an [Output]; the shard
// appends its records, replays them into the machine, and parks the replies
// until the log is durable up to there. Loading replays the same records through
// the same method, so the state of a running machine is always the state that a
// restart would find:
//
//   - a failed append changes nothing, and the callers get a code to retry on;
//   - a failed sync leaves the log's end unknown: the shard drops the machine and
//     loads again;
//   - a read goes through the same door and waits for what was appended before,
//     so no answer tells of a record that a power cut takes back.
//
// [Transactions] is the runtime of the transaction coordinator. It carries out
// what a pure machine can not: it appends markers to data partitions and to
// shards of the group coordinator, waits until they are durable, and tells the
// machine.
//
// # Locks
//
// A shard's lock is taken before a partition's own locks (append, await) and
// never the other way round: what a partition calls back takes no shard lock,
// it only sends replies and queues work. Effects run on the runtime's workers
// with no lock held, so a transaction shard, the data partitions and the group
// shards never wait for each other in a circle. The workers are few and started
// once; no request starts a goroutine.
package coord
