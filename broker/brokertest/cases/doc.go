// Package cases holds black-box cases for brokers of the Kafka protocol. Each is taken from a public bug report of
// some broker (Apache Kafka's JIRA, Redpanda, NATS, client libraries) and states what a client does and what it must
// see. A case speaks raw requests, so that it can repeat, reorder and forge what a client library never would.
//
// The cases run against the embedded broker of this module, and against any broker by address:
//
//	go test ./broker/brokertest/cases -brokers 127.0.0.1:9092
//
// Cases that need power over the broker (restart, kill, disk faults) are skipped against an address. Where brokers
// rightly differ, a case says so and accepts each documented answer.
package cases
