// Package broker is Millrace's log: a broker of the Kafka protocol that runs
// inside a Go process.
//
//	b, err := broker.Start(ctx, broker.Config{})
//
// starts one in memory; Config.Dir makes it durable, Config.Listen opens a port
// for any Kafka client. Clients in the same process connect without a socket:
//
//	kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
//
// # What it promises
//
//   - A produce with acks=all is answered when the records are on disk (one fsync
//     for all who wait). Nothing acknowledged is lost by a crash of the process or
//     of the machine.
//   - No reader, committed offset or coordinator ever tells of a record that a
//     power cut takes back: the high watermark and the last stable offset never
//     pass what is durable.
//   - Idempotent and transactional producers, groups and committed offsets as in
//     Apache Kafka 4.4, versions 1 and 2 of its transactions side by side.
//   - Records go when their topic's retention or compaction says so, never before
//     they are decided and durable, and no jump of the clock deletes any.
//   - A data folder belongs to one process at a time, and a folder of an unknown
//     topic is never deleted.
//
// # What it does not do
//
// One node, so replication factors above 1 are refused. It serves the classic
// group protocol, not KIP-848's, and neither SASL nor TLS. Only what is served is
// advertised, so clients fall back by themselves.
//
// # What it is made of
//
// Start opens the data folder, replays the metadata log, opens the partitions,
// and starts the coordinators and the listeners, in this order; Close goes the
// other way. Requests run listener → api → partition, coord or metadata, and
// answers come back through the connection's queue in request order. See the
// packages under internal for each of them.
package broker
