package cases

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var adminCases = []testCase{
	{"A01", "nisshi", speak, listOperationsOnOneValue},
	{"A03", "nisshi", speak, transactionTimeouts},
	{"A04", "redpanda#3081, #16281", speak, malformedSettings},
	{"A06", "KIP-511, KAFKA-18659", speak, negotiation},
	{"A07", "KAFKA-19444", speak, oldestVersions},
	{"A12", "franz-go TestIssue1330", speak, manyCoordinators},
	{"A13", "krabka 0.5.1", speak, versionsThatAreNotServed},
	{"A16", "camel#9013, redpanda#7084", speak, manyCreateOne},
	{"A18", "", speak, pipelinesKeepOrder},
}

func listOperationsOnOneValue(tg *target) {
	topic := tg.topic("t", 1)
	for op, allowed := range map[kmsg.IncrementalAlterConfigOp][]*kerr.Error{
		kmsg.IncrementalAlterConfigOpAppend:   {kerr.InvalidConfig, kerr.InvalidRequest},
		kmsg.IncrementalAlterConfigOpSubtract: {kerr.InvalidConfig, kerr.InvalidRequest},
		kmsg.IncrementalAlterConfigOpDelete:   {nil},
	} {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.Version = 1
		r := kmsg.NewIncrementalAlterConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op = "retention.ms", op
		if op != kmsg.IncrementalAlterConfigOpDelete {
			c.Value = kmsg.StringPtr("1000")
		}
		r.Configs = append(r.Configs, c)
		req.Resources = append(req.Resources, r)
		want(tg, fmt.Sprint("operation ", op), tg.seed().do(req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode, allowed...)
	}
}

func transactionTimeouts(tg *target) {
	for _, ms := range []int32{0, -1, 1 << 30} {
		id := tg.name(fmt.Sprint("x", ms))
		w := tg.coordinator(1, id)
		tg.eventually("InitProducerId", func() (bool, string) {
			c := w.do(initRequest(4, id, ms, -1, -1)).(*kmsg.InitProducerIDResponse).ErrorCode
			if !retriable(c) {
				want(tg, fmt.Sprint("a timeout of ", ms), c, kerr.InvalidTransactionTimeout)
			}
			return !retriable(c), code(c)
		})
	}
}

// malformedSettings creates topics with values that are none, beside one that is right.
func malformedSettings(tg *target) {
	values := []string{"", " ", "x", "1x", "0x10", "1e3", "-2", "NaN", "9223372036854775808", "1,2", "nil", "true", "\x00", "１"}
	for _, only := range []bool{true, false} {
		req := kmsg.NewPtrCreateTopicsRequest()
		req.Version, req.TimeoutMillis, req.ValidateOnly = 5, 30_000, only
		add := func(name, key, value string) {
			rt := kmsg.NewCreateTopicsRequestTopic()
			rt.Topic, rt.NumPartitions, rt.ReplicationFactor = tg.name(name), 1, 1
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = key, &value
			rt.Configs = append(rt.Configs, c)
			req.Topics = append(req.Topics, rt)
		}
		for i, v := range values {
			add(fmt.Sprint("bad", i), []string{"segment.bytes", "max.message.bytes", "index.interval.bytes"}[i%3], v)
		}
		add("good", "retention.ms", "1000")
		resp := tg.seed().do(req).(*kmsg.CreateTopicsResponse)
		if len(resp.Topics) != len(values)+1 {
			tg.Fatalf("%d rows for %d topics", len(resp.Topics), len(values)+1)
		}
		codes := map[string]int16{}
		for _, rt := range resp.Topics {
			codes[rt.Topic] = rt.ErrorCode
		}
		for i, v := range values {
			want(tg, fmt.Sprintf("value %q", v), codes[tg.name(fmt.Sprint("bad", i))], kerr.InvalidConfig)
		}
		want(tg, "the one that is right", codes[tg.name("good")], nil)
		c := tg.metadata(tg.name("good")).Topics[0].ErrorCode
		if only {
			want(tg, "validated only", c, kerr.UnknownTopicOrPartition)
		}
	}
	tg.eventually("the topic that is right", func() (bool, string) {
		c := tg.metadata(tg.name("good")).Topics[0].ErrorCode
		return c == 0, code(c)
	})
}

// raw sends a request with a body of its own and gives back the answer's body; nil where the connection is closed.
func (w *wire) raw(key, version int16, flexible bool, body []byte) []byte {
	w.t.Helper()
	b := []byte{0, 0, 0, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(w.id.Add(1)))
	b = binary.BigEndian.AppendUint16(b, 5)
	b = append(b, "cases"...)
	if flexible {
		b = append(b, 0)
	}
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	if err := w.send(b); err != nil {
		return nil
	}
	var head [8]byte
	if _, err := io.ReadFull(w.conn, head[:]); err != nil {
		return nil
	}
	out := make([]byte, int(binary.BigEndian.Uint32(head[:4]))-4)
	if _, err := io.ReadFull(w.conn, out); err != nil {
		return nil
	}
	return out
}

func negotiation(tg *target) {
	answer := tg.seed().raw(18, 99, true, []byte{0, 0, 0})
	var v0 kmsg.ApiVersionsResponse
	if err := v0.ReadFrom(answer); err != nil || v0.ErrorCode != kerr.UnsupportedVersion.Code || len(v0.ApiKeys) == 0 {
		tg.Fatalf("ApiVersions 99: %v, %s with %d rows", err, code(v0.ErrorCode), len(v0.ApiKeys))
	}
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version, req.ClientSoftwareName, req.ClientSoftwareVersion = 3, "bad name!", "1"
	want(tg, "a client's name with a space", tg.seed().do(req).(*kmsg.ApiVersionsResponse).ErrorCode, kerr.InvalidRequest)
	for _, k := range [][2]int16{{0, 2}, {3, 99}} {
		if answer := tg.seed().raw(k[0], k[1], k[1] > 9, []byte{0, 0, 0, 0, 0}); answer != nil {
			tg.Fatalf("key %d version %d is answered: %x", k[0], k[1], answer)
		}
	}
}

// oldestVersions: requests of the first versions, which old clients send.
func oldestVersions(tg *target) {
	group := tg.name("g")
	s := tg.seat(group)
	tg.eventually("JoinGroup 0", func() (bool, string) {
		c := s.joined(s.w.do(s.joinRequest(0)).(*kmsg.JoinGroupResponse))
		return c == 0, code(c)
	})
	sync := s.syncRequest(map[string]string{s.id: "mine"})
	sync.Version = 0
	if resp := s.w.do(sync).(*kmsg.SyncGroupResponse); resp.ErrorCode != 0 || string(resp.MemberAssignment) != "mine" {
		tg.Fatalf("SyncGroup 0: %s %q", code(resp.ErrorCode), resp.MemberAssignment)
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.Generation, beat.MemberID = group, s.generation, s.id
	want(tg, "Heartbeat 0", s.w.do(beat).(*kmsg.HeartbeatResponse).ErrorCode, nil)
	for _, version := range []int16{0, 1} {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorKey = version, group
		want(tg, "FindCoordinator", s.w.do(find).(*kmsg.FindCoordinatorResponse).ErrorCode, nil)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.MemberID = group, s.id
	want(tg, "LeaveGroup 0", s.w.do(leave).(*kmsg.LeaveGroupResponse).ErrorCode, nil)
}

func manyCoordinators(tg *target) {
	tg.coordinator(0, tg.name("a")) // they are there
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.Version, req.CoordinatorType = 4, 0
	req.CoordinatorKeys = []string{tg.name("a"), tg.name("b"), tg.name("c"), "", tg.name("a")}
	resp := tg.seed().do(req).(*kmsg.FindCoordinatorResponse)
	if len(resp.Coordinators) != len(req.CoordinatorKeys) {
		tg.Fatalf("%d rows for %d keys", len(resp.Coordinators), len(req.CoordinatorKeys))
	}
	for _, c := range resp.Coordinators {
		if c.Key == "" {
			want(tg, "the empty key", c.ErrorCode, kerr.InvalidGroupID, kerr.InvalidRequest, kerr.CoordinatorNotAvailable, nil)
			continue
		}
		want(tg, "key "+c.Key, c.ErrorCode, nil)
	}
	req.CoordinatorType, req.CoordinatorKeys = 9, []string{"x"}
	want(tg, "an unknown type", tg.seed().do(req).(*kmsg.FindCoordinatorResponse).Coordinators[0].ErrorCode, kerr.InvalidRequest)
}

// versionsThatAreNotServed sends every request in a version above the last one and below the first one: nothing happens but that the
// connection is closed.
func versionsThatAreNotServed(tg *target) {
	versions := kmsg.NewPtrApiVersionsRequest()
	for _, k := range tg.seed().do(versions).(*kmsg.ApiVersionsResponse).ApiKeys {
		for _, version := range []int16{k.MaxVersion + 1, -1} {
			if k.ApiKey == 18 {
				continue // it is answered, see A06
			}
			if answer := tg.seed().raw(k.ApiKey, version, version > 0, make([]byte, 16)); answer != nil {
				tg.Fatalf("key %d version %d is answered: %x", k.ApiKey, version, answer)
			}
		}
	}
	tg.topic("alive", 1)
}

// manyCreateOne: clients that all ask for a topic that is not there make one.
func manyCreateOne(tg *target) {
	name := tg.name("auto")
	conns := make([]*wire, 20)
	for i := range conns {
		conns[i] = tg.seed()
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = 12, true
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &name
	req.Topics = append(req.Topics, rt)
	var wg sync.WaitGroup
	codes := make([]int16, len(conns))
	for i, w := range conns {
		frame := w.frame(req)
		wg.Go(func() {
			if err := w.send(frame); err != nil {
				tg.Error(err)
				return
			}
			resp, err := w.receive(req)
			if err != nil {
				tg.Error(err)
				return
			}
			codes[i] = resp.(*kmsg.MetadataResponse).Topics[0].ErrorCode
		})
	}
	wg.Wait()
	for _, c := range codes {
		want(tg, "Metadata that makes a topic", c, nil, kerr.LeaderNotAvailable, kerr.UnknownTopicOrPartition)
	}
	tg.eventually("the topic", func() (bool, string) {
		c := tg.metadata(name).Topics[0].ErrorCode
		return c == 0, code(c)
	})
	want(tg, "Produce", tg.produce(tg.leader(name, 0), name, plain("v")).ErrorCode, nil)
}

// pipelinesKeepOrder sends a thousand requests of several kinds at once, one that waits among them.
func pipelinesKeepOrder(tg *target) {
	topic := tg.topic("t", 1)
	w, other := tg.leader(topic, 0), tg.leader(topic, 0)
	var reqs []kmsg.Request
	for i := range 1000 {
		switch {
		case i == 500:
			reqs = append(reqs, fetchRequest(topic, 0, false, 1<<20, 200, 1<<20)) // waits, as there is less
		case i%3 == 0:
			reqs = append(reqs, offsetRequest(topic, 0, -1, false))
		case i%3 == 1:
			reqs = append(reqs, kmsg.NewPtrApiVersionsRequest())
		default:
			reqs = append(reqs, produceRequest(9, "", -1, topic, 0, plain("v").bytes()))
		}
	}
	sent := make(chan error, 1)
	go func() {
		for _, req := range reqs {
			if err := w.send(w.frame(req)); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	last := int64(-1)
	for i, req := range reqs {
		resp, err := w.receive(req) // an answer to another request does not decode, or breaks the order of offsets
		if err != nil {
			tg.Fatalf("answer %d: %v", i, err)
		}
		if p, ok := resp.(*kmsg.ProduceResponse); ok {
			row := p.Topics[0].Partitions[0]
			want(tg, "Produce", row.ErrorCode, nil)
			if row.BaseOffset != last+1 {
				tg.Fatalf("offset %d follows %d", row.BaseOffset, last)
			}
			last = row.BaseOffset
		}
		if i == 400 {
			want(tg, "Produce beside it", tg.produce(other, tg.topic("u", 1), plain("v")).ErrorCode, nil)
		}
	}
	if err := <-sent; err != nil {
		tg.Fatal(err)
	}
}
