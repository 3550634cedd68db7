// Package fire copies a topic exactly once while everything is shot at, the way Apache Kafka tests its own transactions:
// integers are seeded, copiers with random aborts move them to another topic in transactions, together with the offsets of
// what they consumed, while the broker or the copiers are ended (with SIGKILL, or in order) and started again, and a
// committed reader watches. In the end the input, the output and what the reader saw must be the same integers, each once
// and in the order of its partition.
//
// Three programs copy: one on txn/session and one on its sister on Sarama, which are this test binary started again, and Apache
// Kafka's own
// org.apache.kafka.tools.TransactionalMessageCopier from the published jars, where MILLRACE_KAFKA_JARS names their folder
// and there is a Java to run them. Each copies in two forms: one process per partition, or processes that share the
// partitions as a consumer group.
//
// T45 of the black-box cases is here too, as it is a program of somebody else. MILLRACE_BINARY names a server to use instead,
// and MILLRACE_KGO_TEST a compiled test binary of franz-go,
// of ones built from the sources.
//
// A run of the tests takes two rounds with each program. MILLRACE_FIRE sets another number (make test-fire takes 20).
package fire
