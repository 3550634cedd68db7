package group

// ID is a topic id. The zero value means that none is known.
type ID = [16]byte

// partition names a topic partition in a group's offsets.
type partition struct {
	topic string
	index int32
}

// committed is one committed offset, as its record says.
type committed struct {
	offset      int64
	leaderEpoch int32
	metadata    string
	commitMs    int64
	// expireMs is the end that the committer asked for (OffsetCommit up to version
	// 4), -1 for none.
	expireMs int64
	topicID  ID
	// at is the log offset of the record: of two commits the higher one wins.
	at int64
}

// of says whether the offset belongs to a topic with this id: offsets written
// before topic ids were (Kafka up to 4.0) count for every topic of the name.
func (c *committed) of(id ID) bool { return c.topicID == ID{} || c.topicID == id }
