package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/clock"
)

const (
	offsetsKept = 2 * time.Second
	offsetsLook = 100 * time.Millisecond // between two searches
)

// shelf is a broker that keeps offsets for two seconds of a clock that the test moves, and can be started again.
type shelf struct {
	*aged
	dir string
}

func startShelf(t *testing.T) *shelf {
	s := &shelf{&aged{T: t, clk: clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}, t.TempDir()}
	s.start()
	t.Cleanup(s.stop)
	s.create("t")
	s.create("u")
	return s
}

func (s *shelf) start() {
	s.Helper()
	b, err := brokertest.StartLoose(s.T, brokertest.InFolder(s.dir), brokertest.WithClock(s.clk), brokertest.Configure(func(c *broker.Config) {
		c.OffsetsRetention, c.OffsetsRetentionCheckInterval = offsetsKept, offsetsLook
		c.TransactionMaxTimeout, c.GroupInitialRebalanceDelay = 20*24*time.Hour, -1
	}))
	if err != nil {
		s.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.MaxVersions(kversion.V4_0_0())) // topics by name
	if err != nil {
		s.Fatal(err)
	}
	s.b, s.cl = b, cl
}

func (s *shelf) stop() {
	s.Helper()
	s.cl.Close()
	if err := s.b.Close(); err != nil {
		s.Errorf("close: %v", err)
	}
}

// pass lets time go by, in steps that give each search its turn.
func (s *shelf) pass(d time.Duration) {
	for ; d > 0; d -= offsetsLook {
		s.clk.Advance(min(d, offsetsLook))
	}
}

// commit stores an offset of partition 0, for a member or for nobody.
func (s *shelf) commit(group, member string, topics ...string) {
	s.Helper()
	generation := int32(1)
	if member == "" {
		generation = -1
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	for _, topic := range topics {
		rt := kmsg.NewOffsetCommitRequestTopic()
		rt.Topic = topic
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Offset, rp.LeaderEpoch = 7, -1
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
	}
	s.await("a commit", func() bool {
		code := ask1[*kmsg.OffsetCommitResponse](s.aged, req).Topics[0].Partitions[0].ErrorCode
		if code != 0 && !kerr.IsRetriable(kerr.ErrorForCode(code)) {
			s.Fatalf("commit of %s: %v", group, kerr.ErrorForCode(code))
		}
		return code == 0
	})
}

// has gives the group's offsets of the topics t and u.
func (s *shelf) has(group string) string {
	s.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	for _, topic := range []string{"t", "u"} {
		rt := kmsg.NewOffsetFetchRequestGroupTopic()
		rt.Topic, rt.Partitions = topic, []int32{0}
		rg.Topics = append(rg.Topics, rt)
	}
	req.Groups = append(req.Groups, rg)
	var have string
	s.await("an answer to OffsetFetch", func() bool {
		g := ask1[*kmsg.OffsetFetchResponse](s.aged, req).Groups[0]
		have = ""
		for _, t := range g.Topics {
			if t.Partitions[0].Offset >= 0 {
				have += fmt.Sprint(t.Topic, t.Partitions[0].Offset)
			}
		}
		return g.ErrorCode == 0
	})
	return have
}

// join makes a group of one consumer of topic t, and gives its id.
func (s *shelf) join(group string) (member string) {
	s.Helper()
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = []string{"t"}
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.ProtocolType, req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = group, "consumer", 1_800_000, 60_000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: subscription.AppendTo(nil)}}
	joined := ask1[*kmsg.JoinGroupResponse](s.aged, req)
	for ; joined.ErrorCode != 0; joined = ask1[*kmsg.JoinGroupResponse](s.aged, req) {
		if err := kerr.ErrorForCode(joined.ErrorCode); joined.ErrorCode != kerr.MemberIDRequired.Code && !kerr.IsRetriable(err) {
			s.Fatalf("join: %v", err)
		}
		req.MemberID = joined.MemberID
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = group, joined.MemberID, joined.Generation
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID}}
	if code := ask1[*kmsg.SyncGroupResponse](s.aged, sync).ErrorCode; code != 0 {
		s.Fatalf("sync: %v", kerr.ErrorForCode(code))
	}
	return joined.MemberID
}

func (s *shelf) leave(group, member string) {
	s.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = group, member
	row := kmsg.NewLeaveGroupRequestMember()
	row.MemberID = member
	req.Members = append(req.Members, row)
	if code := ask1[*kmsg.LeaveGroupResponse](s.aged, req).ErrorCode; code != 0 {
		s.Fatalf("leave: %v", kerr.ErrorForCode(code))
	}
}

// state is what DescribeGroups says.
func (s *shelf) state(group string) (state string) {
	s.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	s.await("an answer to DescribeGroups", func() bool {
		g := ask1[*kmsg.DescribeGroupsResponse](s.aged, req).Groups[0]
		state = g.State
		return g.ErrorCode == 0 || g.ErrorCode == kerr.GroupIDNotFound.Code
	})
	return state
}

func (s *shelf) expect(when string, want map[string]string) {
	s.Helper()
	for group, offsets := range want {
		if got := s.has(group); got != offsets {
			s.Errorf("%s group %s has offsets %q, want %q", when, group, got, offsets)
		}
	}
}

// Committed offsets are kept for the retention from the right moment on: those of consumers at work for ever, where they
// subscribe to the topic; those of nobody's from their commit on; those of a group that was left from then on, with the same
// end after a restart. With its offsets the group goes (KIP-211; KAFKA-4682, KAFKA-7403, KAFKA-8069; case G01).
func TestG01OffsetsExpire(t *testing.T) {
	t.Parallel()
	s := startShelf(t)
	live, left := s.join("live"), s.join("left")
	s.commit("live", live, "t", "u")
	s.commit("left", left, "t")
	s.commit("tool", "", "t")
	s.pass(time.Second)
	s.leave("left", left)
	s.commit("tool", "", "u")
	s.pass(900 * time.Millisecond)
	s.expect("after 1.9 s", map[string]string{"live": "t7u7", "left": "t7", "tool": "t7u7"})
	s.pass(300 * time.Millisecond)
	s.expect("after 2.2 s", map[string]string{"live": "t7", "left": "t7", "tool": "u7"})
	s.stop()
	s.start()
	s.expect("after the restart", map[string]string{"live": "t7", "left": "t7", "tool": "u7"})
	s.pass(700 * time.Millisecond)
	s.expect("after 2.9 s", map[string]string{"live": "t7", "left": "t7", "tool": "u7"})
	s.pass(300 * time.Millisecond)
	s.expect("after 3.2 s", map[string]string{"live": "t7", "left": "", "tool": ""})
	for group, want := range map[string]string{"live": "Stable", "left": "Dead", "tool": "Dead"} {
		if got := s.state(group); got != want {
			t.Errorf("group %s is %s, want %s", group, got, want)
		}
	}
	s.clk.Jump(10 * time.Minute)
	s.expect("within its session", map[string]string{"live": "t7"})
	s.clk.Jump(24 * time.Hour) // its member is dead, and the group is left from now on
	s.expect("when its session has ended", map[string]string{"live": "t7"})
	s.pass(offsetsKept - offsetsLook)
	s.expect("1.9 s later", map[string]string{"live": "t7"})
	s.pass(3 * offsetsLook)
	s.expect("2.2 s later", map[string]string{"live": ""})
}

// An offset that an open transaction has one for does not expire, over a restart neither, and the transaction's is there when it
// commits; its group is kept for that (redpanda#31483; case G27).
func TestG27StagedOffsetsDoNotExpire(t *testing.T) {
	t.Parallel()
	s := startShelf(t)
	s.commit("g", "", "t", "u")
	var p *kmsg.InitProducerIDResponse
	s.await("a producer", func() bool { p = s.init("x"); return p.ErrorCode == 0 })
	for _, group := range []string{"g", "new"} {
		req := kmsg.NewPtrTxnOffsetCommitRequest()
		req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = "x", group, p.ProducerID, p.ProducerEpoch
		rt := kmsg.NewTxnOffsetCommitRequestTopic()
		rt.Topic = "t"
		rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		rp.Offset, rp.LeaderEpoch = 8, -1
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		s.await("an offset in the transaction", func() bool {
			code := ask1[*kmsg.TxnOffsetCommitResponse](s.aged, req).Topics[0].Partitions[0].ErrorCode
			if code != 0 && !kerr.IsRetriable(kerr.ErrorForCode(code)) {
				t.Fatalf("offsets of %s in the transaction: %v", group, kerr.ErrorForCode(code))
			}
			return code == 0
		})
	}
	s.pass(3 * time.Second)
	s.expect("beside the transaction", map[string]string{"g": "t7", "new": ""})
	s.stop()
	s.start()
	s.expect("after the restart", map[string]string{"g": "t7", "new": ""})
	s.pass(3 * time.Second)
	s.expect("3 s after it", map[string]string{"g": "t7", "new": ""})
	end := kmsg.NewPtrEndTxnRequest()
	end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = "x", p.ProducerID, p.ProducerEpoch, true
	s.await("the commit", func() bool {
		code := ask1[*kmsg.EndTxnResponse](s.aged, end).ErrorCode
		if code != 0 && !kerr.IsRetriable(kerr.ErrorForCode(code)) {
			t.Fatalf("commit: %v", kerr.ErrorForCode(code))
		}
		return code == 0
	})
	for _, group := range []string{"g", "new"} {
		s.await("the offset of the transaction", func() bool { return s.has(group) == "t8" })
	}
	s.pass(3 * offsetsLook) // nobody is in these groups, and the commits are six seconds old
	for _, group := range []string{"g", "new"} {
		if got := s.has(group) + s.state(group); got != "Dead" {
			t.Errorf("in the end group %s is %s", group, got)
		}
	}
}
