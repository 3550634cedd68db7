package group

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/broker/internal/coord"
)

// Commit is an OffsetCommit or TxnOffsetCommit request. Its caller has resolved
// the topics and taken out those that may not be committed to.
type Commit struct {
	Group  string
	Member string
	// Instance is nil for dynamic members.
	Instance *string
	// Generation is -1 for those who are not members: tools, and consumers that
	// assign partitions to themselves.
	Generation int32
	// Version is the one of the OffsetCommit request.
	Version int16
	// RetentionMs is how long OffsetCommit up to version 4 wants the offsets kept,
	// -1 for the broker's policy.
	RetentionMs int64
	// Verified is what BeginVerify gave, 0 if the transaction was not verified but
	// has been given this partition on behalf of this very commit.
	Verified uint64
	Offsets  []Offset
}

// Offset is one partition of a Commit.
type Offset struct {
	Topic       string
	TopicID     ID
	Partition   int32
	Offset      int64
	LeaderEpoch int32 // -1: unknown
	Metadata    string
}

// Codes is the answer to a Commit: one error code for each of its offsets.
type Codes []int16

// Commit stores offsets. The answer is Codes.
func (m *Machine) Commit(nowMs int64, to coord.Token, c *Commit) coord.Output {
	m.begin(nowMs)
	codes := make(Codes, len(c.Offsets))
	if code := m.mayCommit(c, false); code != 0 {
		codes.fill(code)
	} else {
		m.commit(c, codes)
	}
	m.reply(to, codes)
	return m.end()
}

// TxnCommit stores offsets that count when the producer's transaction commits. Its
// caller has made sure that the transaction has the group's partition in it. The
// answer is Codes.
func (m *Machine) TxnCommit(nowMs int64, to coord.Token, t coord.Txn, c *Commit) coord.Output {
	m.begin(nowMs)
	codes := make(Codes, len(c.Offsets))
	code := m.mayCommit(c, true)
	switch {
	case c.Group == "":
		code = kerr.InvalidGroupID.Code
	case code == 0 && c.Verified != 0 && !m.verifications.stands(t.ProducerID, c.Verified):
		code = kerr.TransactionAbortable.Code // the transaction ended in the meantime
	}
	if code != 0 {
		codes.fill(code)
	} else if m.commit(c, codes); len(m.records) > 0 {
		m.out.Txn = &t
	}
	m.reply(to, codes)
	return m.end()
}

func (c Codes) fill(code int16) {
	for i := range c {
		c[i] = code
	}
}

// mayCommit checks who commits. Those who are not members may, if the group has
// none. Members may in their own generation; not while it waits for its
// assignment, unless in a transaction: that is of the work of the generation
// before, and its producer has no other moment (KIP-447).
func (m *Machine) mayCommit(c *Commit, transactional bool) int16 {
	g := m.groups[c.Group]
	anonymous := c.Generation < 0 && c.Member == "" && c.Instance == nil
	switch {
	case g == nil && c.Generation < 0:
		return 0
	case g == nil && !transactional && c.Version >= 9:
		return kerr.GroupIDNotFound.Code
	case g == nil:
		return kerr.IllegalGeneration.Code
	case anonymous && transactional:
		return 0 // producers from before KIP-447
	case c.Generation < 0 && g.state() == Empty:
		return 0
	}
	self, code := check(g, c.Member, c.Instance)
	switch {
	case code != 0:
		return code
	case c.Generation != g.live.generation:
		return kerr.IllegalGeneration.Code
	}
	m.alive(self)
	if !transactional && g.live.state == CompletingRebalance {
		return kerr.RebalanceInProgress.Code
	}
	return 0
}

// commit writes the offsets that can be stored.
func (m *Machine) commit(c *Commit, codes Codes) {
	expire := int64(-1)
	if c.RetentionMs >= 0 {
		expire = m.nowMs + c.RetentionMs
	}
	for i := range c.Offsets {
		o := &c.Offsets[i]
		if len(o.Metadata) > m.options.MaxMetadataBytes {
			codes[i] = kerr.OffsetMetadataTooLarge.Code
			continue
		}
		m.writeOffset(c.Group, partition{topic: o.Topic, index: o.Partition}, &committed{
			offset:      o.Offset,
			leaderEpoch: o.LeaderEpoch,
			metadata:    o.Metadata,
			commitMs:    m.nowMs,
			expireMs:    expire,
			topicID:     o.TopicID,
		})
	}
}
