// Package clients holds tests that run other people's Kafka clients and frameworks against the embedded broker, over its
// in-memory network and over TCP: IBM/sarama and lovoo/goka. (franz-go is the client of most other tests; librdkafka is
// run by the CI script through kcat.)
package clients
