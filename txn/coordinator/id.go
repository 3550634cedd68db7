package coordinator

// transaction is one transactional id: what the log says, and what only the
// running machine knows.
type transaction struct {
	id string
	metadata
	// parked waits for Complete… (park.go), oldest first.
	parked []parked
	// noticeMs is when an operator is told next that it waits for a decision, 0 for never.
	noticeMs int64
	// deadlineMs and place belong to Machine.deadlines.
	deadlineMs int64
	place      int
}

// parked is a request that waits.
type parked struct {
	to      Token
	untilMs int64
	request any // an InitRequest, AddRequest or EndRequest
}

// decide makes the decision that md stands for.
func decide(id string, md metadata, reply Reply) Decision {
	return Decision{
		ID: id, ProducerID: md.producerID, Epoch: md.epoch, Commit: md.state == PrepareCommit,
		Partitions: md.partitions, Bumped: md.bumped(), Reply: reply,
	}
}
