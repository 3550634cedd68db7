package coordinator

// MustBeDurable are the partitions whose records a commit decides on: whoever carries the request out makes all that its producer has
// written there durable first, so that the decision never outlives what it is about. None for anything but the commit of the open
// transaction by its owner, which is answered without a decision. The caller must not change the slice.
func (m *Machine) MustBeDurable(r EndRequest) []TopicPartition {
	t := m.get(r.ID)
	if t == nil || !r.Commit || !t.state.open() || r.ProducerID != t.producerID || r.Epoch != t.epoch {
		return nil
	}
	return t.partitions
}

// NotDurable is the answer to a commit whose records can not be made durable. The transaction stays open, and the client can only
// abort it.
func (r EndRequest) NotDurable() EndReply { return endRefused(commitAfterTimeout(r.Version)) }
