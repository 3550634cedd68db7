package group

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/core/record"
)

// kafkaLog reads a partition that Kafka wrote, as a shard would replay it.
func kafkaLog(t testing.TB, index int) []entry {
	t.Helper()
	buf, err := os.ReadFile(fmt.Sprintf("testdata/kafka/offsets-%d.log", index))
	if err != nil {
		t.Fatal(err)
	}
	var log []entry
	for b, err := range record.Batches(buf) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Attributes().Control() {
			m, ok, err := b.Marker()
			if err != nil || !ok {
				t.Fatalf("control batch at %d is no marker: %v", b.BaseOffset(), err)
			}
			log = append(log, entry{marker: &m, offset: b.BaseOffset()})
			continue
		}
		for r, err := range b.Records(nil) {
			if err != nil {
				t.Fatal(err)
			}
			log = append(log, entry{offset: r.Offset, r: coord.Replayed{
				Offset: r.Offset, TimestampMs: r.Timestamp,
				ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), Transactional: b.Attributes().Transactional(),
				Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value),
			}})
		}
	}
	return log
}

// truth is one line of what another decoder found in the log.
type truth struct {
	Kind    string
	Offset  int64
	Base    int64 `json:"base_offset"`
	PID     int64 `json:"producer_id"`
	Txn     bool  `json:"transactional"`
	Control struct{ What string }
	Key     struct {
		Type string
		Data struct {
			Group, Topic string
			Partition    int32
		}
	} `json:"decoded_key"`
	Value *struct {
		Version int16
		Data    struct {
			Offset       int64
			LeaderEpoch  int32 `json:"leader_epoch"`
			Metadata     string
			CommitMs     int64  `json:"commit_timestamp"`
			TopicID      string `json:"topic_id"`
			Generation   int32
			ProtocolType string `json:"protocol_type"`
			Members      []struct {
				ID string `json:"member_id"`
			}
		}
	} `json:"decoded_value"`
	Bytes *struct{ Hex string } `json:"value"`
}

func kafkaTruth(t testing.TB, index int) (lines []truth) {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("testdata/kafka/offsets-%d.jsonl.gz", index))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(z)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var l struct {
			truth
			RawControl json.RawMessage `json:"control"`
		}
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		if l.Kind == "record" && len(l.RawControl) > 0 {
			if err := json.Unmarshal(l.RawControl, &l.Control); err != nil {
				t.Fatal(err)
			}
		}
		if l.Kind == "record" || l.Kind == "batch" {
			lines = append(lines, l.truth)
		}
	}
	if err := s.Err(); err != nil || len(lines) == 0 {
		t.Fatalf("%d lines: %v", len(lines), err)
	}
	return lines
}

// TestKafkaLogLoads loads what Kafka wrote, in every prefix, and compares the
// offsets and groups with a plain fold over the other decoder's lines.
func TestKafkaLogLoads(t *testing.T) {
	for index := range 3 {
		log := kafkaLog(t, index)
		d := newDriver(Options{})
		for n := range log {
			if _, err := d.load(log[:n]); err != nil {
				t.Fatalf("partition %d: the first %d records do not load: %v", index, n, err)
			}
		}
		m, err := d.load(log)
		if err != nil {
			t.Fatal(err)
		}
		offsets, generations, members := fold(kafkaTruth(t, index))
		got := map[string]string{}
		for id, g := range m.groups {
			for p, c := range g.offsets {
				got[fmt.Sprintf("%s/%s-%d", id, p.topic, p.index)] = fmt.Sprintf("%d %d %q %d %s", c.offset, c.leaderEpoch,
					c.metadata, c.commitMs, base64.RawURLEncoding.EncodeToString(c.topicID[:]))
			}
			if g.record == nil {
				continue
			}
			if g.record.Generation != generations[id] || len(g.record.Members) != members[id] {
				t.Errorf("partition %d group %s: generation %d with %d members, want %d with %d", index, id,
					g.record.Generation, len(g.record.Members), generations[id], members[id])
			}
			delete(generations, id)
		}
		if fmt.Sprint(got) != fmt.Sprint(offsets) {
			t.Errorf("partition %d\ngot  %v\nwant %v", index, got, offsets)
		}
		if len(generations) > 0 {
			t.Errorf("partition %d: groups missing: %v", index, generations)
		}
	}
}

// fold computes the final offsets and groups of a log the plain way.
func fold(lines []truth) (offsets map[string]string, generations map[string]int32, members map[string]int) {
	offsets, generations, members = map[string]string{}, map[string]int32{}, map[string]int{}
	open := map[int64]map[string]string{}
	var batch truth
	for _, l := range lines {
		if l.Kind == "batch" {
			batch = l
			continue
		}
		id := fmt.Sprintf("%s/%s-%d", l.Key.Data.Group, l.Key.Data.Topic, l.Key.Data.Partition)
		switch {
		case l.Control.What != "":
			for k, v := range open[batch.PID] {
				if l.Control.What == "COMMIT" {
					offsets[k] = v
				}
			}
			delete(open, batch.PID)
		case l.Key.Type == "GroupMetadataKey" && l.Value == nil:
			delete(generations, l.Key.Data.Group)
		case l.Key.Type == "GroupMetadataKey":
			generations[l.Key.Data.Group] = l.Value.Data.Generation
			members[l.Key.Data.Group] = len(l.Value.Data.Members)
		case l.Key.Type != "OffsetCommitKey":
		case l.Value == nil:
			delete(offsets, id)
		default:
			v := l.Value.Data
			s := fmt.Sprintf("%d %d %q %d %s", v.Offset, v.LeaderEpoch, v.Metadata, v.CommitMs, v.TopicID)
			if !batch.Txn {
				offsets[id] = s
				continue
			}
			if open[batch.PID] == nil {
				open[batch.PID] = map[string]string{}
			}
			open[batch.PID][id] = s
		}
	}
	return offsets, generations, members
}

// TestKafkaOpenTransaction: Kafka's log ends with a transaction that was never
// ended; its offsets are there and do not count.
func TestKafkaOpenTransaction(t *testing.T) {
	d := newDriver(Options{})
	d.log = kafkaLog(t, 2)
	d.topics["gt"] = topicID(t, "Ts2n1ftySRmtmZEf8r7ZJg")
	d.crash()
	for _, stable := range []string{"no", "yes"} {
		_, a := parse("fetch x g=g-txn topics=gt-0,gt-1 stable=" + stable)
		d.command(t, "fetch", a)
	}
	want := "x: fetch gt-0=7(txn commit 2, offsets only) gt-1=5(txn commit 1)\n" +
		"x: fetch gt-0=-1 UNSTABLE_OFFSET_COMMIT gt-1=-1 UNSTABLE_OFFSET_COMMIT\n"
	if got := d.take(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func topicID(t testing.TB, s string) (id ID) {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(id) {
		t.Fatalf("topic id %q: %v", s, err)
	}
	copy(id[:], b)
	return id
}

// TestRecordsAreKafkas: every offset that Kafka wrote is written again with the
// same bytes, and so is every group metadata.
func TestRecordsAreKafkas(t *testing.T) {
	var offsets, metadata int
	for index := range 3 {
		for _, e := range kafkaLog(t, index) {
			if e.marker != nil || e.r.Value == nil {
				continue
			}
			kind, err := keyType(e.r.Key)
			if err != nil {
				t.Fatal(err)
			}
			var key, value []byte
			switch kind {
			case keyOffset:
				group, topic, p, err := splitOffsetKey(e.r.Key)
				if err != nil {
					t.Fatal(err)
				}
				c, err := readOffsetValue(e.r.Value)
				if err != nil {
					t.Fatal(err)
				}
				key = appendOffsetKey(nil, string(group), partition{string(topic), p})
				value = appendOffsetValue(nil, &c)
				offsets++
			case keyMetadata:
				id, v, err := readMetadata(e.r.Key, e.r.Value)
				if err != nil {
					t.Fatal(err)
				}
				key, value = appendMetadataKey(nil, id), v.AppendTo(nil)
				metadata++
			default:
				continue
			}
			if !bytes.Equal(key, e.r.Key) || !bytes.Equal(value, e.r.Value) {
				t.Errorf("partition %d offset %d:\nkey   %x\nwant  %x\nvalue %x\nwant  %x", index, e.offset, key, e.r.Key, value, e.r.Value)
			}
		}
	}
	if offsets < 20 || metadata < 10 {
		t.Errorf("only %d offsets and %d groups compared", offsets, metadata)
	}
}

// TestMachineWritesWhatKafkaWrites plays the life of a group through the machine
// at the times at which Kafka had it: join, sync, commit, leave. The records are
// Kafka's, byte for byte.
func TestMachineWritesWhatKafkaWrites(t *testing.T) {
	want := map[int64]truth{}
	for _, l := range kafkaTruth(t, 1) {
		if l.Kind == "record" {
			want[l.Offset] = l
		}
	}
	d := newDriver(Options{InitialRebalanceDelay: -1})
	d.m.newID = func() string { return "6dc55d3f-4a4c-4fdf-ba3f-3e0be1eff7ab" }
	const member = "expire-6dc55d3f-4a4c-4fdf-ba3f-3e0be1eff7ab"

	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.MemberID = 9, "g-expire", ""
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = 6000, 300000, "consumer"
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: unhex(t, "00030000000100026775ffffffff00000000ffffffffffff")}}
	client := Client{ID: "expire", Host: "/127.0.0.1"}
	d.run(d.m.Join(1795966294618, d.token("join"), client, join))
	join.MemberID = member
	d.run(d.m.Join(1795966294620, d.token("join"), client, join))

	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.Generation, sync.MemberID = "g-expire", 1, member
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{
		{MemberID: member, MemberAssignment: unhex(t, "000300000001000267750000000100000000ffffffff")},
	}
	d.run(d.m.Sync(1795966294621, d.token("sync"), sync))
	d.run(d.m.Commit(1795966295444, d.token("commit"), &Commit{
		Group: "g-expire", Member: member, Generation: 1, Version: 10, RetentionMs: -1,
		Offsets: []Offset{{Topic: "gu", TopicID: topicID(t, "5C8e61pUSYmLAKbD7yS1YA"), Offset: 1, Metadata: "will expire"}},
	}))
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Version, leave.Group = 5, "g-expire"
	leave.Members = []kmsg.LeaveGroupRequestMember{{MemberID: member}}
	d.run(d.m.Leave(1795966295449, d.token("leave"), leave))

	if len(d.log) != 3 {
		t.Fatalf("%d records, want 3; replies:\n%s", len(d.log), d.take())
	}
	for i, e := range d.log {
		if got, want := hex.EncodeToString(e.r.Value), want[int64(24+i)].Bytes.Hex; got != want {
			t.Errorf("record %d\ngot  %s\nwant %s", i, got, want)
		}
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRecordsOfOlderVersions: offsets and groups that older Kafkas wrote.
func TestRecordsOfOlderVersions(t *testing.T) {
	for v := int16(0); v <= newestOffsetValue; v++ {
		value := kmsg.OffsetCommitValue{
			Version: v, Offset: 5, LeaderEpoch: 3, Metadata: "m", CommitTimestamp: 100, ExpireTimestamp: 200, TopicID: ID{1},
		}
		c, err := readOffsetValue(value.AppendTo(nil))
		if err != nil {
			t.Fatalf("version %d: %v", v, err)
		}
		want := committed{offset: 5, leaderEpoch: -1, metadata: "m", commitMs: 100, expireMs: -1}
		if v == 1 {
			want.expireMs = 200
		}
		if v >= 3 {
			want.leaderEpoch = 3
		}
		if v >= 4 {
			want.topicID = ID{1}
		}
		if c != want {
			t.Errorf("version %d: %+v, want %+v", v, c, want)
		}
	}
	for v := int16(0); v <= newestMetadataValue; v++ {
		value := kmsg.GroupMetadataValue{
			Version: v, ProtocolType: "consumer", Generation: 4, Protocol: kmsg.StringPtr("range"), Leader: kmsg.StringPtr("a"),
			Members: []kmsg.GroupMetadataValueMember{{
				MemberID: "a", ClientID: "c", ClientHost: "h", SessionTimeoutMillis: 10, RebalanceTimeoutMillis: 20, Subscription: []byte("s"),
			}},
		}
		m := New(Options{}, nil)
		key := appendMetadataKey(nil, "g")
		if err := m.Replay(coord.Replayed{Key: key, Value: value.AppendTo(nil)}); err != nil {
			t.Fatalf("version %d: %v", v, err)
		}
		m.Loaded(0)
		a := m.groups["g"].live.byID["a"]
		if want := max(10, min(int64(v), 1)*20); a.rebalanceMs != want || a.deadlineMs != 10 {
			t.Errorf("version %d: rebalance timeout %d, want %d; deadline %d, want 10", v, a.rebalanceMs, want, a.deadlineMs)
		}
	}
}

// TestUndecodableRecords: damage that no checksum found, or a newer format, is an
// error that says where.
func TestUndecodableRecords(t *testing.T) {
	for name, r := range map[string]coord.Replayed{
		"no key":             {Offset: 5, Value: []byte{0}},
		"short key":          {Offset: 5, Key: []byte{0}, Value: []byte{0}},
		"cut offset key":     {Offset: 5, Key: []byte{0, 1, 0, 9, 'g'}, Value: []byte{0}},
		"long offset key":    {Offset: 5, Key: append(appendOffsetKey(nil, "g", partition{"t", 0}), 0), Value: []byte{0, 4}},
		"cut group key":      {Offset: 5, Key: []byte{0, 2, 0, 9, 'g'}, Value: []byte{0}},
		"empty offset value": {Offset: 5, Key: appendOffsetKey(nil, "g", partition{"t", 0}), Value: []byte{}},
		"newer offset value": {Offset: 5, Key: appendOffsetKey(nil, "g", partition{"t", 0}), Value: []byte{0, 5, 0, 0}},
		"cut offset value":   {Offset: 5, Key: appendOffsetKey(nil, "g", partition{"t", 0}), Value: []byte{0, 4, 0, 0}},
		"newer group value":  {Offset: 5, Key: appendMetadataKey(nil, "g"), Value: []byte{0, 5, 0, 0}},
		"cut group value":    {Offset: 5, Key: appendMetadataKey(nil, "g"), Value: []byte{0, 3, 0, 0}},
	} {
		m := New(Options{}, nil)
		if err := m.Replay(r); err == nil || !bytes.Contains([]byte(err.Error()), []byte("offset 5")) {
			t.Errorf("%s: %v", name, err)
		}
		if m.Dump() != "" {
			t.Errorf("%s: left behind %s", name, m.Dump())
		}
	}
}
