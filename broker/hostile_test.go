package broker_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// hostileCase is one odd request and what Apache Kafka 4.4.0 did with it.
type hostileCase struct {
	Group    string  `json:"group"`
	What     string  `json:"what"`
	API      string  `json:"api"`
	Version  int16   `json:"api_version"`
	Request  string  `json:"request_hex"`
	Answer   string  `json:"answer"`
	Response *string `json:"response_hex"`
}

func hostileCases(t *testing.T) []hostileCase {
	t.Helper()
	var out []hostileCase
	eachLine(t, "testdata/hostile.jsonl.gz", func(line []byte) {
		var c hostileCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	})
	return out
}

func eachLine(t *testing.T, path string, fn func([]byte)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		fn(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// hostileDeviations reads where this broker means to differ: group, case, what it
// does, and why.
func hostileDeviations(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/hostile-deviations.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(line, " | ")
		if len(f) != 4 {
			t.Fatalf("deviation %q has %d fields, want 4", line, len(f))
		}
		out[f[0]+" | "+f[1]] = f[2]
	}
	return out
}

// TestHostileRequests sends the odd requests that were recorded with a fresh
// Apache Kafka 4.4.0 to a fresh broker, in the same order, and compares: closed,
// waiting, or answered with which error codes. Differences that are meant are in
// testdata/hostile-deviations.txt; any other fails.
func TestHostileRequests(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP(), brokertest.Configure(func(c *broker.Config) {
		c.NoAutoCreate = true
		c.GroupMinSessionTimeout = 6 * time.Second
	}))
	h := &hostile{T: t, broker: b, served: servedVersions(t, b), swap: map[string]string{}}
	h.prepare()
	deviations := hostileDeviations(t)
	seen := map[string]bool{}
	var differences, compared int
	for _, c := range hostileCases(t) {
		name := c.Group + " | " + c.What
		h.before(c)
		if !h.concerns(c) {
			continue
		}
		compared++
		want, got := kafkaSaid(c), h.ask(c)
		// A transaction that is just ending may say so; clients ask again.
		for n := 0; n < 1000 && strings.Contains(got, concurrent) && !strings.Contains(want, concurrent); n++ {
			got = h.ask(c)
		}
		if want == "answers" && got != saidClosed && got != saidWaits {
			got = want
		}
		if meant, ok := deviations[name]; ok {
			seen[name] = true
			if got != meant {
				t.Errorf("%s\n  meant to differ: %s\n  got:             %s\n  Kafka:           %s", name, meant, got, want)
			}
			continue
		}
		if got != want {
			differences++
			t.Errorf("%s\n  Kafka: %s\n  got:   %s", name, want, got)
		}
	}
	for name := range deviations {
		if !seen[name] {
			t.Errorf("deviation %q is listed but no such case was compared", name)
		}
	}
	t.Logf("%d cases compared, %d meant to differ, %d differ", compared, len(deviations), differences)
	// After all that the broker still serves.
	if v := servedVersions(t, b); len(v) != len(h.served) {
		t.Errorf("the broker serves %d APIs after the odd requests, %d before", len(v), len(h.served))
	}
}

// hostile is a run of the odd requests.
type hostile struct {
	*testing.T
	broker *broker.Broker
	served map[int16]kmsg.ApiVersionsResponseApiKey
	// swap maps what Kafka made up (member ids, fetch sessions) to what this broker
	// made up in its place, for later requests.
	swap map[string]string
}

func dialTCP(t *testing.T, b *broker.Broker) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// call sends one good request on a connection of its own.
func call(t *testing.T, b *broker.Broker, req kmsg.Request) kmsg.Response {
	t.Helper()
	c := dialTCP(t, b)
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(kmsg.NewRequestFormatter(kmsg.FormatterClientID("hostile")).AppendRequest(nil, req, 7)); err != nil {
		t.Fatal(err)
	}
	body, err := readAnswer(c)
	if err != nil {
		t.Fatalf("%s: %v", kmsg.NameForKey(req.Key()), err)
	}
	resp := req.ResponseKind()
	if err := decodeAnswer(resp, body); err != nil {
		t.Fatalf("%s: %v", kmsg.NameForKey(req.Key()), err)
	}
	return resp
}

func readAnswer(c net.Conn) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c, b)
	return b, err
}

// decodeAnswer reads a response behind its header.
func decodeAnswer(resp kmsg.Response, b []byte) error {
	if len(b) < 4 {
		return fmt.Errorf("answer of %d bytes", len(b))
	}
	b = b[4:]
	if resp.IsFlexible() && resp.Key() != 18 {
		if len(b) == 0 || b[0] != 0 {
			return fmt.Errorf("flexible answer without an empty tag section: %x", b[:min(len(b), 8)])
		}
		b = b[1:]
	}
	return resp.ReadFrom(b)
}

func servedVersions(t *testing.T, b *broker.Broker) map[int16]kmsg.ApiVersionsResponseApiKey {
	t.Helper()
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion, req.Version = "test", "1", 3
	out := map[int16]kmsg.ApiVersionsResponseApiKey{}
	for _, k := range call(t, b, req).(*kmsg.ApiVersionsResponse).ApiKeys {
		out[k.ApiKey] = k
	}
	return out
}

// prepare makes the topics of the recording.
func (h *hostile) prepare() {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, 5000
	for _, t := range []struct {
		name   string
		n      int32
		policy string
	}{{"h", 2, "delete"}, {"hc", 1, "compact"}, {"hf", 2, "delete"}, {"a.b", 1, "delete"}} {
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = t.name, t.n, 1
		kv := kmsg.NewCreateTopicsRequestTopicConfig()
		kv.Name, kv.Value = "cleanup.policy", &t.policy
		rt.Configs = append(rt.Configs, kv)
		req.Topics = append(req.Topics, rt)
	}
	for _, t := range call(h.T, h.broker, req).(*kmsg.CreateTopicsResponse).Topics {
		if t.ErrorCode != 0 {
			h.Fatalf("create %s: error %d", t.Topic, t.ErrorCode)
		}
	}
	for range 5 {
		produce(h.T, h.broker, "hf", 0, batchOf("a", "b"))
	}
	del := kmsg.NewPtrDeleteRecordsRequest()
	del.Version = 2
	dt := kmsg.NewDeleteRecordsRequestTopic()
	dt.Topic = "hf"
	dp := kmsg.NewDeleteRecordsRequestTopicPartition()
	dp.Offset = 3
	dt.Partitions = append(dt.Partitions, dp)
	del.Topics = append(del.Topics, dt)
	if p := call(h.T, h.broker, del).(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0]; p.ErrorCode != 0 || p.LowWatermark != 3 {
		h.Fatalf("DeleteRecords: %+v", p)
	}
}

// before does what the recording did between the recorded requests.
func (h *hostile) before(c hostileCase) {
	initID := func(id *string) {
		if _, ok := h.served[22]; !ok {
			return
		}
		req := kmsg.NewPtrInitProducerIDRequest()
		req.Version, req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = 4, id, 60000, -1, -1
		call(h.T, h.broker, req)
	}
	switch c.What {
	case "sequence 5 as the first of a producer":
		for range 4 {
			initID(nil)
		}
	case "duplicate of a batch more than five back":
		for seq := int32(2); seq <= 7; seq++ {
			produce(h.T, h.broker, "h", 0, idempotentBatch(2, 0, seq, "x"))
		}
	case "InitProducerId: own id and epoch":
		initID(kmsg.StringPtr("h-init"))
	case "Produce v11: transactional batch, partition not added":
		initID(kmsg.StringPtr("h-t1"))
	case "EndTxn v3 abort in Ongoing":
		h.addPartition("h-t1", 7)
	case "EndTxn v5 commit in Empty":
		initID(kmsg.StringPtr("h-t2"))
	case "TxnOffsetCommit v4 before AddOffsetsToTxn":
		initID(kmsg.StringPtr("h-t3"))
	case "known session, epoch 7 instead of 1":
		h.openSession(c)
	}
}

// openSession opens a fetch session in place of the one that the case names.
func (h *hostile) openSession(c hostileCase) {
	req := fetchRequest("h", 0, 0, 1000)
	req.SessionEpoch = 0
	ours := call(h.T, h.broker, req).(*kmsg.FetchResponse).SessionID
	raw, err := hex.DecodeString(c.Request)
	if err != nil {
		h.Fatal(err)
	}
	theirs := kmsg.NewPtrFetchRequest()
	theirs.Version = c.Version
	// Behind the length: key, version, correlation id, client id, one empty tag section.
	if err := theirs.ReadFrom(raw[4+8+2+len("hostile")+1:]); err != nil {
		h.Fatal(err)
	}
	h.swap[string(binary.BigEndian.AppendUint32(nil, uint32(theirs.SessionID)))] =
		string(binary.BigEndian.AppendUint32(nil, uint32(ours)))
}

func (h *hostile) addPartition(id string, pid int64) {
	if _, ok := h.served[24]; !ok {
		return
	}
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID = 3, id, pid
	rt := kmsg.NewAddPartitionsToTxnRequestTopic()
	rt.Topic, rt.Partitions = "h", []int32{1}
	req.Topics = append(req.Topics, rt)
	call(h.T, h.broker, req)
}

// concerns says whether the case is about an API that this broker serves; others
// are compared only where the connection is closed.
func (h *hostile) concerns(c hostileCase) bool {
	if strings.Contains(c.Request, ".") { // a large request, recorded in part
		return false
	}
	if c.API == "" || c.Answer == "closes the connection" {
		return true
	}
	raw, err := hex.DecodeString(c.Request)
	if err != nil {
		h.Fatal(err)
	}
	_, ok := h.served[int16(binary.BigEndian.Uint16(raw[4:]))]
	return ok
}

// Waiting for nothing: the recording waited three seconds, here a silent
// connection is given this long.
const (
	silence  = 300 * time.Millisecond
	patience = 10 * time.Second
)

// concurrent is CONCURRENT_TRANSACTIONS.
const concurrent = "=51"

const (
	saidClosed = "closes the connection"
	saidWaits  = "waits"
)

// ask sends the case on a connection of its own and says what came back.
func (h *hostile) ask(c hostileCase) string {
	raw, err := hex.DecodeString(c.Request)
	if err != nil {
		h.Fatal(err)
	}
	for theirs, ours := range h.swap {
		raw = bytes.ReplaceAll(raw, []byte(theirs), []byte(ours))
	}
	nc := dialTCP(h.T, h.broker)
	defer nc.Close()
	wait := patience
	if c.Answer == saidWaits {
		wait = silence
	}
	if err := nc.SetDeadline(time.Now().Add(wait)); err != nil {
		h.Fatal(err)
	}
	// The broker may close before all is written.
	_, _ = nc.Write(raw)
	body, err := readAnswer(nc)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return saidWaits
	case err != nil:
		return saidClosed
	}
	h.learn(c, raw, body)
	return brief(c, codesOf(raw, body))
}

// brief says only which codes there are where the answer lists all topics, for
// the recording had others.
func brief(c hostileCase, said string) string {
	if c.Group != "framing" {
		return said
	}
	codes := map[string]bool{}
	for _, f := range strings.Fields(said) {
		_, code, _ := strings.Cut(f, "=")
		codes[code] = true
	}
	return fmt.Sprint(slices.Sorted(maps.Keys(codes)))
}

// kafkaSaid is the recorded answer in the form of ask.
func kafkaSaid(c hostileCase) string {
	if c.Answer == saidClosed || c.Answer == saidWaits {
		return c.Answer
	}
	raw, err := hex.DecodeString(c.Request)
	if err != nil {
		return err.Error()
	}
	if c.Response == nil {
		return "answers"
	}
	body, err := hex.DecodeString(*c.Response)
	if err != nil {
		return err.Error()
	}
	if n := int(binary.BigEndian.Uint32(body)); c.API == "" && n > 8 && n <= len(body)-4 { // recorded with its length
		body = body[4 : 4+n]
	}
	return brief(c, codesOf(raw, body))
}

// codesOf lists every error code of an answer, with its field.
func codesOf(request, body []byte) string {
	resp, err := answerTo(request, body)
	if err != nil {
		return err.Error()
	}
	var out []string
	walk(reflect.ValueOf(resp).Elem(), "", func(path string, v reflect.Value) {
		if strings.HasSuffix(path, "ErrorCode") {
			out = append(out, fmt.Sprintf("%s=%d", strings.TrimPrefix(path, "."), v.Int()))
		}
	})
	if len(out) == 0 {
		return "answers"
	}
	slices.Sort(out) // the order of rows is nobody's promise
	return strings.Join(out, " ")
}

func answerTo(request, body []byte) (kmsg.Response, error) {
	key, version := int16(binary.BigEndian.Uint16(request[4:])), int16(binary.BigEndian.Uint16(request[6:]))
	resp := kmsg.ResponseForKey(key)
	if resp == nil {
		return nil, fmt.Errorf("answer to unknown key %d", key)
	}
	if key == 18 && (version < 0 || version > resp.MaxVersion()) {
		version = 0
	}
	resp.SetVersion(version)
	return resp, decodeAnswer(resp, body)
}

func walk(v reflect.Value, path string, leaf func(string, reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "UnknownTags" {
				walk(v.Field(i), path+"."+name, leaf)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			walk(v.Index(i), path+"[]", leaf)
		}
	default:
		leaf(path, v)
	}
}

// learn notes the member ids and fetch sessions that this broker gave where Kafka
// gave others.
func (h *hostile) learn(c hostileCase, raw, body []byte) {
	if c.Response == nil || c.API != "JoinGroup" && c.API != "Fetch" {
		return
	}
	recorded, err := hex.DecodeString(*c.Response)
	if err != nil {
		h.Fatal(err)
	}
	a, errA := answerTo(raw, recorded)
	b, errB := answerTo(raw, body)
	if errA != nil || errB != nil {
		return
	}
	var theirs, ours string
	switch a := a.(type) {
	case *kmsg.JoinGroupResponse:
		theirs, ours = a.MemberID, b.(*kmsg.JoinGroupResponse).MemberID
	case *kmsg.FetchResponse:
		if a.SessionID == 0 {
			return
		}
		theirs = string(binary.BigEndian.AppendUint32(nil, uint32(a.SessionID)))
		ours = string(binary.BigEndian.AppendUint32(nil, uint32(b.(*kmsg.FetchResponse).SessionID)))
	}
	if theirs != ours && theirs != "" && len(theirs) == len(ours) {
		h.swap[theirs] = ours
	}
}
