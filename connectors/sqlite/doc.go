// Package sqlite stores records in an SQLite database, exactly once.
//
// Rows, rejected records and the position of each partition go into one
// transaction. The position lives in the table _millrace_offsets of the same
// database, one row per (sink, topic, partition), beside the fence of the
// present owner:
//
//	sink topic topic_id partition next_offset leader_epoch epoch seq owner written_at meta
//
// A take-over raises epoch and owner in that row; the last statement of every
// commit is an UPDATE of the same row that names epoch, owner, next_offset and
// seq as they must be. An owner that has been overtaken, or a batch that was
// delivered before, changes no row and is rolled back.
//
// The database runs in WAL mode with synchronous=FULL: what Commit has reported
// survives a power cut. With a weaker mode data and position would still vanish
// together, so the log would fill the gap.
//
// SQLite has one writer at a time. A writer that is frozen inside its
// transaction keeps a take-over waiting until its context ends or its process
// dies; nothing is lost or doubled meanwhile. Use a local disk: the locks of
// network file systems are not to be trusted.
//
// # Mapping
//
// Each [Column] names where its value comes from: "key", "value", "value.a.b" for
// a field of a JSON value, "key.x", "window.start" for the start of the window in
// a windowed key, "topic", "partition", "offset", "timestamp", "header.NAME".
// Without a From it is "value.NAME". In mode [Append] every record is a new row.
// In mode [Upsert] the key columns name the row: a record replaces it, a record
// with a null value deletes it.
package sqlite
