// Package replicas keeps the partitions of this node in step with the cluster's
// metadata: it opens the log of every partition that an image assigns to the
// node, and deletes it when the topic is gone.
//
// A folder is named <topic>-<partition>. The manager deletes a folder only when
// the metadata log says that the topic with the id in that folder was removed.
// A folder that nobody knows is never deleted: it is left where it is, and moved
// aside to <folder>.<n>-stray when a new partition needs the name. So lost or
// damaged metadata never costs data.
//
// Lookups read an immutable table through an atomic pointer and take no lock.
package replicas
