package group_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// ask sends a request in one version.
func ask[R kmsg.Response](t testing.TB, cl *kgo.Client, version int16, req kmsg.Request) R {
	t.Helper()
	req.SetVersion(version)
	resp, err := cl.Broker(1).Request(context.Background(), pinned{req})
	if err != nil {
		t.Fatalf("%T version %d: %v", req, version, err)
	}
	return resp.(R)
}

// awaitGroups returns when every group has its coordinator: until then a request of a test may be answered with
// COORDINATOR_LOAD_IN_PROGRESS.
func awaitGroups(t testing.TB, cl *kgo.Client) {
	t.Helper()
	for {
		switch code := ask[*kmsg.ListGroupsResponse](t, cl, 4, kmsg.NewPtrListGroupsRequest()).ErrorCode; code {
		case 0:
			return
		case kerr.CoordinatorLoadInProgress.Code:
		default:
			t.Fatalf("list groups: %v", kerr.ErrorForCode(code))
		}
	}
}

// pinned is a request in the version that it has, whatever the client would choose.
type pinned struct{ kmsg.Request }

func (p pinned) SetVersion(int16)  {}
func (p pinned) MaxVersion() int16 { return p.GetVersion() }

// topicIDOf asks for a topic's id.
func topicIDOf(t testing.TB, cl *kgo.Client, name string) [16]byte {
	t.Helper()
	r := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(name)
	r.Topics = append(r.Topics, topic)
	resp := ask[*kmsg.MetadataResponse](t, cl, 12, r)
	if resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("metadata of %s: %v", name, kerr.ErrorForCode(resp.Topics[0].ErrorCode))
	}
	return resp.Topics[0].TopicID
}

// TestOffsetsInEveryVersion commits in every version of OffsetCommit and reads it
// back in every version of OffsetFetch: by name and by id, one group and several,
// named partitions and all.
func TestOffsetsInEveryVersion(t *testing.T) {
	b := brokertest.Start(t)
	cl := client(t, b)
	awaitGroups(t, cl)
	createTopic(t, cl, "one", 3)
	createTopic(t, cl, "two", 1)
	ids := map[string][16]byte{"one": topicIDOf(t, cl, "one"), "two": topicIDOf(t, cl, "two")}
	for v := int16(2); v <= 10; v++ {
		group := fmt.Sprintf("g%d", v)
		commit := kmsg.NewPtrOffsetCommitRequest()
		commit.Group, commit.Generation = group, -1
		for _, name := range []string{"one", "two", "missing"} {
			topic := kmsg.NewOffsetCommitRequestTopic()
			topic.Topic, topic.TopicID = name, ids[name]
			for i := range int32(2) {
				p := kmsg.NewOffsetCommitRequestTopicPartition()
				p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = i, int64(v)*10+int64(i), 0, kmsg.StringPtr("m"+name)
				topic.Partitions = append(topic.Partitions, p)
			}
			commit.Topics = append(commit.Topics, topic)
		}
		resp := ask[*kmsg.OffsetCommitResponse](t, cl, v, commit)
		missing := kerr.UnknownTopicOrPartition.Code
		if v >= 10 {
			missing = kerr.UnknownTopicID.Code
		}
		want := []int16{0, 0, 0, kerr.UnknownTopicOrPartition.Code, missing, missing}
		var got []int16
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				got = append(got, p.ErrorCode)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("OffsetCommit version %d: codes %v, want %v", v, got, want)
		}
		for f := int16(1); f <= 10; f++ {
			fetchBack(t, cl, f, v, group, ids)
		}
	}
}

// fetchBack reads what TestOffsetsInEveryVersion has committed.
func fetchBack(t *testing.T, cl *kgo.Client, version, committed int16, group string, ids map[string][16]byte) {
	t.Helper()
	offset := int64(committed) * 10
	epoch := int32(-1)
	if version >= 5 && committed >= 6 {
		epoch = 0
	}
	row := func(topic string, p int32, offset int64, epoch int32, metadata string) string {
		return fmt.Sprintf("%s-%d=%d@%d(%s) ", topic, p, offset, epoch, metadata)
	}
	named := row("one", 0, offset, epoch, "mone") + row("one", 1, offset+1, epoch, "mone") + row("one", 2, -1, -1, "") +
		row("two", 0, offset, epoch, "mtwo")
	all := row("one", 0, offset, epoch, "mone") + row("one", 1, offset+1, epoch, "mone") + row("two", 0, offset, epoch, "mtwo")
	questions := map[bool]string{false: named, true: all}
	if version < 2 {
		delete(questions, true)
	}
	for everything, want := range questions {
		r := kmsg.NewPtrOffsetFetchRequest()
		r.Group = group
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = group
		if !everything {
			r.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: "one", Partitions: []int32{0, 1, 2}}, {Topic: "two", Partitions: []int32{0}}}
			for _, topic := range r.Topics {
				g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: topic.Topic, TopicID: ids[topic.Topic], Partitions: topic.Partitions})
			}
		}
		other := kmsg.NewOffsetFetchRequestGroup()
		other.Group = "unknown"
		r.Groups = []kmsg.OffsetFetchRequestGroup{other, g}
		resp := ask[*kmsg.OffsetFetchResponse](t, cl, version, r)
		got := ""
		if version < 8 {
			for _, topic := range resp.Topics {
				for _, p := range topic.Partitions {
					got += row(topic.Topic, p.Partition, p.Offset, p.LeaderEpoch, *p.Metadata)
				}
			}
		} else {
			if len(resp.Groups) != 2 || resp.Groups[0].Group != "unknown" || len(resp.Groups[0].Topics) != 0 {
				t.Fatalf("OffsetFetch version %d: %+v", version, resp.Groups)
			}
			for _, topic := range resp.Groups[1].Topics {
				for name, id := range ids {
					if version >= 10 && id == topic.TopicID {
						topic.Topic = name
					}
				}
				for _, p := range topic.Partitions {
					got += row(topic.Topic, p.Partition, p.Offset, p.LeaderEpoch, *p.Metadata)
				}
			}
		}
		if got != want {
			t.Errorf("OffsetFetch version %d of OffsetCommit version %d, all=%v\ngot  %s\nwant %s", version, committed, everything, got, want)
		}
	}
}

// TestGroupInEveryVersion goes once around a group in every version of JoinGroup,
// with the version of the other requests that is as old.
func TestGroupInEveryVersion(t *testing.T) {
	b := brokertest.Start(t)
	cl := client(t, b)
	awaitGroups(t, cl)
	for v := int16(0); v <= 9; v++ {
		group := fmt.Sprintf("g%d", v)
		join := kmsg.NewPtrJoinGroupRequest()
		join.Group, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = group, 10_000, 10_000, "consumer"
		join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("m")}}
		joined := ask[*kmsg.JoinGroupResponse](t, cl, v, join)
		if v >= 4 {
			if joined.ErrorCode != kerr.MemberIDRequired.Code || joined.MemberID == "" {
				t.Fatalf("JoinGroup version %d: %+v", v, joined)
			}
			join.MemberID = joined.MemberID
			joined = ask[*kmsg.JoinGroupResponse](t, cl, v, join)
		}
		if joined.ErrorCode != 0 || joined.Generation != 1 || joined.LeaderID != joined.MemberID || *joined.Protocol != "range" ||
			len(joined.Members) != 1 || (v >= 7) != (joined.ProtocolType != nil) {
			t.Fatalf("JoinGroup version %d: %+v", v, joined)
		}
		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Group, sync.Generation, sync.MemberID = group, 1, joined.MemberID
		sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID, MemberAssignment: []byte("a")}}
		if r := ask[*kmsg.SyncGroupResponse](t, cl, min(v, 5), sync); r.ErrorCode != 0 || string(r.MemberAssignment) != "a" {
			t.Fatalf("SyncGroup version %d: %+v", min(v, 5), r)
		}
		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Group, beat.Generation, beat.MemberID = group, 1, joined.MemberID
		if r := ask[*kmsg.HeartbeatResponse](t, cl, min(v, 4), beat); r.ErrorCode != 0 {
			t.Fatalf("Heartbeat version %d: %+v", min(v, 4), r)
		}
		leave := kmsg.NewPtrLeaveGroupRequest()
		leave.Group, leave.MemberID = group, joined.MemberID
		leave.Members = []kmsg.LeaveGroupRequestMember{{MemberID: joined.MemberID}}
		if r := ask[*kmsg.LeaveGroupResponse](t, cl, min(v, 5), leave); r.ErrorCode != 0 || v >= 3 && (len(r.Members) != 1 || r.Members[0].ErrorCode != 0) {
			t.Fatalf("LeaveGroup version %d: %+v", min(v, 5), r)
		}
		if r := ask[*kmsg.HeartbeatResponse](t, cl, min(v, 4), beat); r.ErrorCode != kerr.UnknownMemberID.Code {
			t.Fatalf("Heartbeat after leaving: %+v", r)
		}
	}
}

// TestAuthorize: without the right nothing is told of groups, offsets and topics.
func TestAuthorize(t *testing.T) {
	var refused atomic.Value // an Access without its principal and resource
	refuse := func(name, operation string) { refused.Store(broker.Access{Name: name, Operation: operation}) }
	refuse("", "")
	b := brokertest.Start(t, brokertest.Configure(func(c *broker.Config) {
		c.Authorize = func(a broker.Access) bool {
			return refused.Load() != broker.Access{Name: a.Name, Operation: a.Operation}
		}
	}))
	cl := client(t, b)
	awaitGroups(t, cl)
	createTopic(t, cl, "open", 1)
	createTopic(t, cl, "closed", 1)
	commit := func() string {
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Group, r.Generation = "g", -1
		for _, name := range []string{"open", "closed"} {
			r.Topics = append(r.Topics, kmsg.OffsetCommitRequestTopic{Topic: name, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 1}}})
		}
		resp := ask[*kmsg.OffsetCommitResponse](t, cl, 8, r)
		return fmt.Sprint(resp.Topics[0].Partitions[0].ErrorCode, resp.Topics[1].Partitions[0].ErrorCode)
	}
	fetch := func(all bool) string {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = "g"
		if !all {
			g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: "open", Partitions: []int32{0}}, {Topic: "closed", Partitions: []int32{0}}}
		}
		r := kmsg.NewPtrOffsetFetchRequest()
		r.Groups = []kmsg.OffsetFetchRequestGroup{g}
		resp := ask[*kmsg.OffsetFetchResponse](t, cl, 8, r)
		s := fmt.Sprint(resp.Groups[0].ErrorCode)
		for _, topic := range resp.Groups[0].Topics {
			s += fmt.Sprintf(" %s=%d/%d", topic.Topic, topic.Partitions[0].Offset, topic.Partitions[0].ErrorCode)
		}
		return s
	}
	for _, step := range []struct {
		what, name, operation string
		run                   func() string
		want                  string
	}{
		{"commit without READ on the topic", "closed", "READ", commit, "0 29"},
		{"commit", "", "", commit, "0 0"},
		{"commit without READ on the group", "g", "READ", commit, "30 30"},
		{"fetch without DESCRIBE on the topic", "closed", "DESCRIBE", func() string { return fetch(false) }, "0 open=1/0 closed=-1/29"},
		{"fetch all without DESCRIBE on the topic", "closed", "DESCRIBE", func() string { return fetch(true) }, "0 open=1/0"},
		{"fetch without DESCRIBE on the group", "g", "DESCRIBE", func() string { return fetch(true) }, "30"},
	} {
		refuse(step.name, step.operation)
		if got := step.run(); got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
	}
	refuse("g", "READ")
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group = "g"
	if r := ask[*kmsg.JoinGroupResponse](t, cl, 9, join); r.ErrorCode != kerr.GroupAuthorizationFailed.Code {
		t.Errorf("join: %d", r.ErrorCode)
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group = "g"
	if r := ask[*kmsg.SyncGroupResponse](t, cl, 5, sync); r.ErrorCode != kerr.GroupAuthorizationFailed.Code {
		t.Errorf("sync: %d", r.ErrorCode)
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group = "g"
	if r := ask[*kmsg.HeartbeatResponse](t, cl, 4, beat); r.ErrorCode != kerr.GroupAuthorizationFailed.Code {
		t.Errorf("heartbeat: %d", r.ErrorCode)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group = "g"
	if r := ask[*kmsg.LeaveGroupResponse](t, cl, 5, leave); r.ErrorCode != kerr.GroupAuthorizationFailed.Code {
		t.Errorf("leave: %d", r.ErrorCode)
	}
}
