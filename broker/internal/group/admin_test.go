package group

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/core/record"
)

// desk runs handlers of a machine and replays their records into it and into a second one, as a restart would.
type desk struct {
	*testing.T
	m, again *Machine
	offset   int64
}

func newDesk(t *testing.T) *desk {
	make := func() *Machine {
		n := 0
		m := New(Options{}, func() string { n++; return fmt.Sprint("id", n) })
		m.Loaded(0)
		return m
	}
	return &desk{t, make(), make(), 0}
}

// do runs a handler, takes its records in, and gives its one answer.
func (d *desk) do(out coord.Output) any {
	d.Helper()
	for _, r := range out.Records {
		d.replay(coord.Replayed{Key: slices.Clone(r.Key), Value: slices.Clone(r.Value), Offset: d.offset})
	}
	if len(out.Replies) == 0 {
		return nil
	}
	return out.Replies[0].Response
}

func (d *desk) replay(r coord.Replayed) {
	d.Helper()
	if len(r.Value) == 0 {
		r.Value = nil
	}
	for _, m := range []*Machine{d.m, d.again} {
		if err := m.Replay(r); err != nil {
			d.Fatal(err)
		}
	}
	d.offset++
}

// offset is a committed offset in the log, of a transaction if pid is not negative.
func (d *desk) commit(group, topic string, offset, pid int64) {
	d.Helper()
	c := committed{offset: offset, leaderEpoch: -1, expireMs: -1}
	d.replay(coord.Replayed{
		Key: appendOffsetKey(nil, group, partition{topic: topic}), Value: appendOffsetValue(nil, &c), Offset: d.offset,
		Transactional: pid >= 0, ProducerID: pid,
	})
}

func (d *desk) fetched(group string) string {
	d.Helper()
	r := d.do(d.m.Fetch(0, 1, &Fetch{Group: group, All: true, TopicID: func(string) ID { return ID{} }}))
	return fmt.Sprint(r)
}

// TestDeleteGroup: a group goes with its record, its offsets and those of open transactions, whose marker brings nothing back.
func TestDeleteGroup(t *testing.T) {
	d := newDesk(t)
	d.commit("g", "t", 5, -1)
	d.commit("g", "u", 6, 9)
	d.commit("other", "t", 7, 9)
	d.replay(coord.Replayed{Key: appendMetadataKey(nil, "g"), Value: (&kmsg.GroupMetadataValue{Version: metadataValueVersion, ProtocolType: "consumer"}).AppendTo(nil), Offset: d.offset})
	want := []Listed{{"g", "consumer", Empty}, {"other", "", Empty}}
	if got := d.do(d.m.List(0, 1)).([]Listed); !slices.Equal(got, want) {
		t.Fatalf("listed: %+v", got)
	}
	if code := d.do(d.m.Delete(0, 1, "nobody")); code != kerr.GroupIDNotFound.Code {
		t.Errorf("an unknown group: code %v", code)
	}
	if code := d.do(d.m.Delete(0, 1, "g")); code != int16(0) {
		t.Fatalf("code %v", code)
	}
	for _, m := range []*Machine{d.m, d.again} {
		if err := m.ReplayMarker(record.Marker{ProducerID: 9, Commit: true}, d.offset); err != nil {
			t.Fatal(err)
		}
		if got := m.Dump(); got != d.m.Dump() {
			t.Errorf("replayed:\n%s\nrunning:\n%s", got, d.m.Dump())
		}
	}
	if got := d.do(d.m.List(0, 1)).([]Listed); !slices.Equal(got, want[1:]) {
		t.Errorf("listed after that: %+v", got)
	}
	if row := d.do(d.m.Describe(0, 1, "g")).(*kmsg.DescribeGroupsResponseGroup); row.State != "Dead" {
		t.Errorf("described as %s", row.State)
	}
}

// TestDeleteOffsetsOf: single offsets go, those of open transactions too; what members subscribe to stays.
func TestDeleteOffsetsOf(t *testing.T) {
	d := newDesk(t)
	d.commit("g", "t", 5, -1)
	d.commit("g", "t", 8, 9)
	d.commit("g", "u", 6, -1)
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = []string{"u"}
	member := kmsg.GroupMetadataValueMember{MemberID: "m", SessionTimeoutMillis: 10_000, Subscription: subscription.AppendTo(nil)}
	v := kmsg.GroupMetadataValue{Version: metadataValueVersion, ProtocolType: "consumer", Generation: 1, Protocol: kmsg.StringPtr("range"), Leader: kmsg.StringPtr("m"),
		Members: []kmsg.GroupMetadataValueMember{member}}
	d.replay(coord.Replayed{Key: appendMetadataKey(nil, "g"), Value: v.AppendTo(nil), Offset: d.offset})
	if code := d.do(d.m.Delete(0, 1, "g")); code != kerr.NonEmptyGroup.Code {
		t.Errorf("a group with members: code %v", code)
	}
	if row := d.do(d.m.Describe(0, 1, "g")).(*kmsg.DescribeGroupsResponseGroup); row.State != "Stable" || row.Protocol != "range" || len(row.Members) != 1 {
		t.Errorf("described as %+v", row)
	}
	r := d.do(d.m.DeleteOffsetsOf(0, 1, &OffsetDelete{"g", []OffsetPartition{{"t", 0}, {"u", 0}, {"t", 0}, {"t", 7}}})).(OffsetsDeleted)
	if r.Code != 0 || !slices.Equal(r.Codes, []int16{0, kerr.GroupSubscribedToTopic.Code, 0, 0}) {
		t.Fatalf("%+v", r)
	}
	for _, m := range []*Machine{d.m, d.again} {
		if err := m.ReplayMarker(record.Marker{ProducerID: 9, Commit: true}, d.offset); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := d.fetched("g"), "[{u [{0 6 -1  0}]}]"; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
	if r := d.do(d.m.DeleteOffsetsOf(0, 1, &OffsetDelete{"nobody", nil})).(OffsetsDeleted); r.Code != kerr.GroupIDNotFound.Code {
		t.Errorf("an unknown group: %+v", r)
	}
}
