// Package twophase holds the requests of two-phase commit (KIP-939), each in each state, with the answers of this broker
// and of Apache Kafka 4.4.0 beside each other in testdata/answers.txt.
//
//	go test ./broker/brokertest/twophase
//	go test ./broker/brokertest/twophase -brokers 127.0.0.1:9092 -off 127.0.0.1:9192
//
// The first compares the embedded broker with its column. The second compares brokers by address with Kafka's: one with
// transaction.two.phase.commit.enable, one without; both need unstable.api.versions.enable, for Kafka 4.4 serves
// InitProducerId 6 only then. With -rewrite the column is written.
package twophase
