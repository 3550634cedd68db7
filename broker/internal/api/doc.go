// Package api turns requests into calls and results into responses: one file per
// API key, NN_name.go, headed by its versions, behaviour and errors. It has no
// rules of its own beyond the protocol's: partitions, coordinators and the
// metadata store decide.
//
// A handler runs in the reader goroutine of its connection and never blocks. It
// replies at once, or parks: it leaves the reply with whoever will know (a
// partition's Await, a coordinator's shard, the metadata store) and returns, so
// one connection has many requests under way. The connection sends answers in
// request order, whatever the order of the replies.
//
// What is not fit to be answered closes the connection, exactly where Kafka
// closes it: unknown keys, versions that are not served, bodies that end early.
// Bytes behind a body are ignored, as Kafka does.
//
// Every handler asks Server.Authorize before it tells or changes anything.
package api
