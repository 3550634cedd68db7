package onsarama

import "github.com/IBM/sarama"

// delivered is a record on its way to the session.
type delivered struct {
	membership sarama.ConsumerGroupSession
	message    *sarama.ConsumerMessage
}

// event is something that the group wants of the session: take partitions, give them up, or end.
type event struct {
	membership sarama.ConsumerGroupSession
	given      bool
	handled    chan struct{} // closed by the session when the partitions are given up
	failure    error
}
