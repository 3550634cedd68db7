package group

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
)

// Times of the tests below: what is kept is kept for an hour, and looked at when the test says so.
const (
	keepMs  = 3_600_000
	emptyMs = 50_000_000 // when the group was left
	storeMs = 20_000_000 // when offsets were committed, unless a test says otherwise
)

// attic is a driver whose log a test writes, to look at its offsets at a time.
type attic struct {
	*driver
	t *testing.T
}

func newAttic(t *testing.T) *attic {
	return &attic{newDriver(Options{Retention: keepMs * time.Millisecond, RetentionCheckInterval: time.Millisecond, InitialRebalanceDelay: -1}), t}
}

// put writes an offset of partition 0 as it is in the log, of a transaction if pid is not negative.
func (a *attic) put(topic string, pid int64, c committed) {
	a.t.Helper()
	out := coord.Output{Records: []coord.Record{{Key: appendOffsetKey(nil, "g", partition{topic: topic}), Value: appendOffsetValue(nil, &c)}}}
	if pid >= 0 {
		out.Txn = &coord.Txn{ProducerID: pid}
	}
	a.run(out)
}

func (a *attic) record(v kmsg.GroupMetadataValue) {
	a.t.Helper()
	if v.Version == 0 {
		v.Version = metadataValueVersion
	}
	a.run(coord.Output{Records: []coord.Record{{Key: appendMetadataKey(nil, "g"), Value: v.AppendTo(nil)}}})
}

// left is the record of a group without members.
func left(protocolType string) kmsg.GroupMetadataValue {
	return kmsg.GroupMetadataValue{ProtocolType: protocolType, Generation: 3, CurrentStateTimestamp: emptyMs}
}

// at is a group with one member. Its session lasts as long as the test.
func at(protocolType string, instance *string, topics ...string) kmsg.GroupMetadataValue {
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = topics
	raw := subscription.AppendTo(nil)
	if topics == nil {
		raw = []byte("?")
	}
	return kmsg.GroupMetadataValue{ProtocolType: protocolType, Generation: 3, Protocol: kmsg.StringPtr("p"), Leader: kmsg.StringPtr("m"),
		CurrentStateTimestamp: 1, Members: []kmsg.GroupMetadataValueMember{{MemberID: "m", InstanceID: instance, SessionTimeoutMillis: 2_000_000_000, Subscription: raw}}}
}

// look searches for what has expired, and tells what is left: topics with an offset, "group" for a record.
func (a *attic) look(nowMs int64) string {
	a.t.Helper()
	a.nowMs = nowMs
	a.m.retention.wait(nowMs)
	a.run(a.m.Tick(nowMs))
	a.same(a.t)
	var have []string
	g := a.m.groups["g"]
	if g == nil {
		return "[]"
	}
	for p := range g.offsets {
		have = append(have, p.topic)
	}
	slices.Sort(have)
	if g.record != nil {
		have = append(have, "group")
	}
	return fmt.Sprint(have)
}

// TestRetention is each rule of what expires when, a millisecond before and on time; after a restart too (KIP-211, case G01).
func TestRetention(t *testing.T) {
	plain := committed{commitMs: storeMs, expireMs: -1}
	instance := "i"
	for _, c := range []struct {
		name          string
		fill          func(a *attic)
		dueMs         int64 // 0: nothing expires, ever
		before, after string
	}{
		{"only offsets", func(a *attic) { a.put("t", -1, plain) }, storeMs + keepMs, "[t]", "[]"},
		{"each by its own commit", func(a *attic) {
			a.put("t", -1, plain)
			a.put("u", -1, committed{commitMs: storeMs + 1, expireMs: -1})
		}, storeMs + keepMs, "[t u]", "[u]"},
		{"committed again", func(a *attic) {
			a.put("t", -1, plain)
			a.put("t", -1, committed{commitMs: storeMs + 70, expireMs: -1})
		}, storeMs + 70 + keepMs, "[t]", "[]"},
		{"left by consumers", func(a *attic) { a.record(left("consumer")); a.put("t", -1, plain) }, emptyMs + keepMs, "[t group]", "[]"},
		{"left by others", func(a *attic) { a.record(left("connect")); a.put("t", -1, plain) }, emptyMs + keepMs, "[t group]", "[]"},
		{"left, then set by a tool", func(a *attic) {
			a.record(left("consumer"))
			a.put("t", -1, plain)
			a.put("u", -1, committed{commitMs: emptyMs + 9, expireMs: -1})
		}, emptyMs + keepMs, "[t u group]", "[u group]"},
		{"left, as written before Kafka 2.1", func(a *attic) {
			v := left("consumer")
			v.Version = 1
			a.record(v)
			a.put("t", -1, plain)
		}, storeMs + keepMs, "[t group]", "[]"},
		{"a record that only keeps the name", func(a *attic) { a.record(left("")); a.put("t", -1, plain) }, storeMs + keepMs, "[t group]", "[]"},
		{"consumers at work", func(a *attic) { a.record(at("consumer", nil, "t")); a.put("t", -1, plain) }, 0, "[t group]", ""},
		{"a static consumer at work", func(a *attic) { a.record(at("consumer", &instance, "t")); a.put("t", -1, plain) }, 0, "[t group]", ""},
		{"consumers that gave a topic up", func(a *attic) {
			a.record(at("consumer", nil, "t"))
			a.put("t", -1, plain)
			a.put("u", -1, plain)
		}, storeMs + keepMs, "[t u group]", "[t group]"},
		{"a static consumer that gave everything up", func(a *attic) { a.record(at("consumer", &instance, "t")); a.put("u", -1, plain) },
			storeMs + keepMs, "[u group]", "[group]"},
		{"consumers whose subscription can not be read", func(a *attic) { a.record(at("consumer", nil)); a.put("t", -1, plain) }, 0, "[t group]", ""},
		{"others at work", func(a *attic) { a.record(at("connect", nil, "t")); a.put("u", -1, plain) }, 0, "[u group]", ""},
		{"an end of its own, sooner", func(a *attic) {
			a.record(left("consumer"))
			a.put("t", -1, committed{commitMs: storeMs, expireMs: storeMs + 5})
			a.put("u", -1, plain)
		}, storeMs + 5, "[t u group]", "[u group]"},
		{"an end of its own, later", func(a *attic) { a.put("t", -1, committed{commitMs: storeMs, expireMs: storeMs + 9*keepMs}) },
			storeMs + 9*keepMs, "[t]", "[]"},
		{"an end of its own, subscribed to", func(a *attic) {
			a.record(at("consumer", nil, "t"))
			a.put("t", -1, committed{commitMs: storeMs, expireMs: storeMs + 5})
		}, 0, "[t group]", ""},
		{"left, times before 1970", func(a *attic) {
			v := left("consumer")
			v.CurrentStateTimestamp = math.MinInt64
			a.record(v)
			a.put("t", -1, committed{commitMs: math.MinInt64 + 1, expireMs: -1})
		}, keepMs, "[t group]", "[]"},
		{"times before 1970", func(a *attic) { a.put("t", -1, committed{commitMs: -1 << 62, expireMs: -1}) }, keepMs, "[t]", "[]"},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/restarted=%v", c.name, restarted), func(t *testing.T) {
				a := newAttic(t)
				c.fill(a)
				due := c.dueMs
				if due == 0 {
					due = 1_900_000_000
				}
				if restarted {
					a.nowMs = due - 1000
					a.crash()
				}
				if got := a.look(due - 1); got != c.before {
					t.Errorf("a millisecond before there are %s, want %s", got, c.before)
				}
				want := c.after
				if c.dueMs == 0 {
					want = c.before
				}
				if got := a.look(due); got != want {
					t.Errorf("on time there are %s, want %s", got, want)
				}
			})
		}
	}
}

// TestRetentionAndOpenTransactions: what an open transaction has an offset for does not expire, whoever its producer is, and its
// group stays for the marker (case G27).
func TestRetentionAndOpenTransactions(t *testing.T) {
	for _, commit := range []bool{true, false} {
		t.Run(fmt.Sprintf("commit=%v", commit), func(t *testing.T) {
			a := newAttic(t)
			a.topics["t"], a.topics["u"], a.topics["w"] = ID{1}, ID{2}, ID{3}
			a.record(left("consumer"))
			for _, topic := range []string{"t", "u"} {
				a.put(topic, -1, committed{offset: 5, commitMs: storeMs, expireMs: -1, topicID: a.topics[topic]})
			}
			a.put("t", 7, committed{offset: 6, commitMs: storeMs + 1, expireMs: -1, topicID: a.topics["t"]})
			a.put("w", 8, committed{offset: 9, commitMs: storeMs + 1, expireMs: -1, topicID: a.topics["w"]})
			if got := a.look(emptyMs + 2*keepMs); got != "[t group]" {
				t.Fatalf("beside open transactions there are %s", got)
			}
			a.crash()
			a.marker(7, commit)
			if got, want := a.m.groups["g"].offsets[partition{topic: "t"}].offset, map[bool]int64{true: 6, false: 5}[commit]; got != want {
				t.Errorf("after the marker the offset is %d, want %d", got, want)
			}
			a.same(t)
			if got := a.look(emptyMs + 2*keepMs); got != "[group]" {
				t.Errorf("while the other transaction is open there are %s", got)
			}
			a.marker(8, false)
			if got := a.look(emptyMs + 2*keepMs); got != "[]" {
				t.Errorf("after all there are %s", got)
			}
		})
	}
}

// TestRetentionOfRunningGroups: while members join, and between a member id that was given out and its use, a group stays. When
// the last member is gone its time begins anew, and ends at the same moment after a restart.
func TestRetentionOfRunningGroups(t *testing.T) {
	a := newAttic(t)
	a.topics["t"] = ID{1}
	a.put("t", -1, committed{commitMs: storeMs, expireMs: -1, topicID: ID{1}})
	a.nowMs = storeMs + keepMs - 1
	a.do(t, "join c v=9 session=1000000")
	a.put("t", -1, committed{commitMs: storeMs, expireMs: storeMs + 5, topicID: ID{1}}) // one that is over at once
	if got := a.look(a.nowMs); got != "[]" || a.m.groups["g"] == nil {
		t.Errorf("beside a member that is about to join: %s, group known: %v", got, a.m.groups["g"] != nil)
	}
	a.put("t", -1, committed{commitMs: 1, expireMs: -1, topicID: ID{1}})
	a.do(t, "join c m=c-1 session=1000000")
	if g := a.m.groups["g"]; g.state() == Empty || g.state() == Stable {
		t.Fatalf("the group is %s", g.state())
	}
	if got := a.look(a.nowMs); got != "[t]" {
		t.Errorf("in a rebalance: %s", got)
	}
	a.do(t, "sync c m=c-1 gen=1")
	if got := a.look(a.nowMs); got != "[t group]" {
		t.Errorf("in a stable group with an unreadable subscription: %s", got)
	}
	a.nowMs += 400_000
	since := a.nowMs
	a.do(t, "leave c members=c-1")
	if got := a.look(since + keepMs - 1); got != "[t group]" {
		t.Errorf("a millisecond before the time is over: %s", got)
	}
	a.nowMs = since + 10
	a.crash()
	if got := a.look(since + keepMs - 1); got != "[t group]" {
		t.Errorf("the same after a restart: %s", got)
	}
	if got := a.look(since + keepMs); got != "[]" {
		t.Errorf("on time: %s", got)
	}
}

// TestRetentionInARebalance: what consumers subscribe to is not known in a rebalance, so nothing expires until it is over.
func TestRetentionInARebalance(t *testing.T) {
	a := newAttic(t)
	v := at("consumer", nil, "t")
	a.record(v)
	a.put("u", -1, committed{commitMs: storeMs, expireMs: -1})
	a.nowMs = storeMs + keepMs
	r := kmsg.NewPtrJoinGroupRequest()
	r.Group, r.MemberID, r.ProtocolType, r.SessionTimeoutMillis, r.RebalanceTimeoutMillis = "g", "m", "consumer", 1_000_000, 1_000_000
	r.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "p", Metadata: v.Members[0].Subscription}}
	a.run(a.m.Join(a.nowMs, a.token("c"), Client{}, r))
	if got := a.m.groups["g"].state(); got != CompletingRebalance {
		t.Fatalf("the group is %s", got)
	}
	if got := a.look(a.nowMs); got != "[u group]" {
		t.Errorf("in the rebalance: %s", got)
	}
	a.do(t, "sync c m=m gen=4")
	if got := a.look(a.nowMs); got != "[group]" {
		t.Errorf("after it: %s", got)
	}
}

func (a *attic) do(t *testing.T, command string) {
	t.Helper()
	name, args := parse(command)
	a.command(t, name, args)
	a.take()
}

// TestRetentionInPortions: a search over many groups is spread over ticks that are due at once, the next comes an interval after
// its end, and what could not be appended is found by it.
func TestRetentionInPortions(t *testing.T) {
	d := newDriver(Options{Retention: time.Hour, RetentionCheckInterval: time.Minute})
	const groups = 3*groupsPerTick + 1
	c := committed{commitMs: 1000, expireMs: -1}
	for i := range groups {
		d.run(coord.Output{Records: []coord.Record{{Key: appendOffsetKey(nil, fmt.Sprint("g", i), partition{topic: "t"}), Value: appendOffsetValue(nil, &c)}}})
	}
	if at, ok := d.m.NextDeadline(); !ok || at != 1000+60_000 {
		t.Fatalf("the first search is at %d, %v", at, ok)
	}
	d.nowMs = 1000 + keepMs
	d.broken = true
	d.run(d.m.Tick(d.nowMs))
	d.broken = false
	for left := groups - groupsPerTick; left > 0; left -= groupsPerTick {
		if at, ok := d.m.NextDeadline(); !ok || at > d.nowMs {
			t.Fatalf("with %d groups to look at the next tick is at %d, %v", left, at, ok)
		}
		d.run(d.m.Tick(d.nowMs))
	}
	if n := len(d.m.groups); n != groupsPerTick {
		t.Errorf("%d groups are left, want the %d whose tombstones were lost", n, groupsPerTick)
	}
	if at, ok := d.m.NextDeadline(); !ok || at != d.nowMs+60_000 {
		t.Errorf("the next search is at %d, %v", at, ok)
	}
	d.advance(60_000)
	d.same(t)
	if n := len(d.m.groups); n != 0 {
		t.Errorf("%d groups are left", n)
	}
	if at, ok := d.m.NextDeadline(); ok {
		t.Errorf("nothing is left, and a search is at %d", at)
	}
}
