// Package topology is the physical plan of an application: which
// sub-topologies there are, what each reads, keeps and writes, and which
// internal topics that takes. It is plain data with one constructor per
// sub-topology that makes a task; the DSL of package streams writes it, the
// runtime and the test driver read it.
//
// Invariants:
//
//   - A topic is read by exactly one sub-topology, so a partition of it
//     belongs to exactly one task.
//   - Store names are unique in the application, and each store has exactly
//     one changelog: a topic of its own, or the source topic that it
//     materialises.
//   - The tasks of a sub-topology are numbered like partitions, 0 to n-1,
//     where n is the largest partition count among its sources; task i reads
//     partition i of each source that has one.
//   - Internal topics never expire by record time: a replay of records from
//     2001 must survive. Repartition topics keep everything until it is
//     purged after the commit; changelogs are compacted.
package topology
