// Package streams is a typed language for stream processing over topics of the
// Kafka protocol. An application reads topics, keeps state, and writes topics;
// what it has read, kept and written is committed together, so every record
// counts exactly once, whatever crashes in between.
//
// # An application
//
// An [App] is a topology under an id. The id names its consumer group and its
// internal topics. Every method adds a node and returns the place behind it;
// types are inferred throughout:
//
//	app := streams.New("shop")
//	app.Stream[string, string]("lines").
//		FlatMapValues(strings.FieldsSeq).
//		GroupBy(strings.ToLower).
//		Count(streams.As("words")).
//		To("counts")
//
// Run it on the embedded broker, a Millrace cluster or Apache Kafka: the same
// topology, the same guarantees.
//
// # Streams and tables
//
// A [Stream] is a sequence of records, each a fact of its own. A [Table] is the
// latest value per key, kept in a store; a null value deletes a row.
// Aggregating a stream makes a table, as [Stream.ToTable] does;
// [Table.ToStream] gives its updates. Stateless operators (Filter, Map,
// MapValues, FlatMapValues, SelectKey, Split, Merge, Peek) pass time and headers
// of a record on. Tables that are computed row by row (Filter, MapValues, joins of
// tables) keep nothing of their own: a look-up asks the tables below. A table
// grouped anew ([Table.GroupBy]) takes the old value of a row away from its group
// and adds the new one.
//
// # Joins
//
// A stream joins a table by key at the time of processing ([Stream.JoinTable]), a
// table another by key ([Table.Join]), a stream another by key and time
// ([Stream.Join] with [Within], [Before], [After] or [Around]). Left and outer
// forms give a [Maybe] for a side that may be missing. In a join of streams,
// records that meet nobody go out alone in order of time, when stream time has
// passed all they could have met; see [Strict].
//
// Tables join by a foreign key too ([Table.JoinFK]), streams a topic that every
// worker has a copy of ([App.GlobalTable]). A table that is [Versioned] knows its
// rows as they were: a stream meets the row of its own time.
//
// # Processors
//
// [Stream.Process] runs a [Processor] of one's own, with timers by stream time or
// wall clock. It, and any Try function of a stream, reaches stores that are declared
// ([App.Store], [App.VersionedStore], [App.Timers]) and named with [Use]. What is
// written there is part of the record's transaction.
//
// # Two forms of a function
//
// An operator takes a pure function over values: Filter, MapValues, Aggregate
// with [Sum] or [Fold]. Its Try form (TryFilter, TryMapValues, TryAggregate, …)
// takes a function of a context and the whole [Record], with time and headers,
// that may return an error. The context ends when the application stops or the
// work moves to another process.
//
// Tasks run at the same time, so functions are called from several goroutines.
// What a function keeps outside of stores it must guard itself, and gets it
// neither back after a crash nor undone with a transaction.
//
// # Keys, partitions and repartitioning
//
// State is kept where its key is: a topology runs as tasks, one for each
// partition. Operators that change the key (Map, SelectKey, GroupBy) only mark
// the stream; the first operator that keeps state by key sends the records
// through a repartition topic of the application's own, where null keys are
// dropped. Joined topics must have the same number of partitions. Partitions are
// chosen as Kafka's own clients do, so Java producers and Go applications agree.
//
// # Time and windows
//
// Time is that of the records. Each operator with windows knows its stream
// time, the highest timestamp it has taken in its partition; it survives
// restarts. A window is closed when stream time reaches its end plus [Grace];
// what comes later is dropped and counted; [LateTo] keeps it. Windows are
// [Tumbling], [Hopping], [Sliding], days to years of a time zone ([Daily]),
// [Unlimited] or sessions ([Grouped.Sessions]). Windowed aggregations send every
// update, or with [WTable.OnClose] one final result per key and window, when it
// closes, in order of window end and key:
//
//	app.Stream[string, Order]("orders").
//		GroupBy(func(o Order) string { return o.User }).
//		Windowed(streams.Tumbling(time.Minute, streams.Grace(10*time.Second))).
//		Aggregate(streams.Sum(func(o Order) float64 { return o.Amount }), streams.As("spend")).
//		OnClose().
//		Map(func(w streams.Window, user string, sum float64) (string, float64) { … }).
//		To("spend")
//
// Replaying the records of 2001 today gives the same windows: nothing here
// looks at a wall clock, and no internal topic expires by record time.
//
// # Null
//
// A nil pointer, slice, map or interface is Kafka's null, as key and as value. A
// type without nil cannot say null, so a null value never reaches a function
// over such values: MapValues passes it on, Filter, FlatMapValues and Map leave
// it out, SelectKey and GroupBy give it a null key. A null key of such a type
// reads as the zero value. Aggregations and joins drop null keys and, but for
// windowed ones over types with a nil and windowed counts, null values.
//
// # Bytes
//
// Serdes are found by type: strings, byte slices, numbers, bool and UUIDs in
// the encodings of Kafka's own clients, types with BinaryMarshaler in theirs,
// other types as JSON; see package serde for the exact rules. Register another
// with [App.RegisterSerde] or give one operator its own with [KeySerde] and
// [ValSerde]. Types without a serde are reported when the topology is built,
// all at once, with node and type. Protobuf, Avro and JSON Schema, each alone or
// with a Schema Registry, are in packages below serde.
//
// # Names and upgrades
//
// A node's name is the path to it, so it does not depend on what else the
// topology holds. [As] names a node, and with it its store and internal topics;
// name what keeps state before you deploy it. Keep the text of [App.Describe]
// with a release: [App.CheckUpgrade] refuses a next one that would lose state
// by a silent rename.
//
// # Errors
//
// A record that does not decode, an error of a Try function, a panic of any
// function and a value that does not encode are each a [Failure] with phase,
// node and coordinates of the record. [OnError] decides: [Fail], the default;
// [Skip]; [Retry] a limited number of times; [DeadLetter], in the same
// transaction. A panic is not tried again. Skipping ends the record at that
// node; other branches of the topology still get it.
//
// # Testing
//
// Package streamstest runs an application without a broker: the production
// tasks and stores on as many partitions as wanted, under virtual time, with
// crashes.
package streams
