package api

import "github.com/twmb/franz-go/pkg/kerr"

// leaderHint tells a client that asked the wrong node who leads the partition, so
// that it need not ask for metadata first (KIP-951).
type leaderHint struct {
	leader, epoch int32
	ok            bool
}

// hint is empty unless the code says that this node does not lead the partition.
func (s *Server) hint(code int16, topic string, index int32) leaderHint {
	if code != kerr.NotLeaderForPartition.Code {
		return leaderHint{}
	}
	t := s.Meta.Image().Topic(topic)
	if t == nil || index < 0 || int(index) >= len(t.Partitions) {
		return leaderHint{}
	}
	p := t.Partitions[index]
	return leaderHint{leader: p.Leader, epoch: p.LeaderEpoch, ok: true}
}

// hintSize is a CurrentLeader struct: leader, epoch, no tags.
const hintSize = 4 + 4 + 1

// appendTo appends the hint as a tagged field.
func (h leaderHint) appendTo(e *encoder, tag byte) {
	e.dst = append(e.dst, tag, hintSize)
	e.i32(h.leader)
	e.i32(h.epoch)
	e.noTags()
}

// endpoints appends the tag section that ends an answer: the addresses of the
// nodes that hints name (NodeEndpoints, tag 0), if there are any. All hints of one
// node's cluster name that node.
func (s *Server) endpoints(e *encoder, c *Call, hinted bool) {
	if !hinted {
		e.noTags()
		return
	}
	field := encoder{flexible: true}
	field.array(1)
	field.i32(s.Config.NodeID)
	host, port := s.Advertised(c.Listener, c.Local)
	field.str(host)
	field.i32(port)
	field.nullable("") // rack
	field.noTags()
	e.dst = append(e.dst, 1, 0) // one tag: 0
	e.uvarint(uint64(len(field.dst)))
	e.dst = append(e.dst, field.dst...)
}
