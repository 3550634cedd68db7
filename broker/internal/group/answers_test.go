package group_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
)

// exchange is a request that Kafka was sent, and its answer.
type exchange struct {
	What     string
	API      string `json:"api"`
	Version  int16  `json:"api_version"`
	Request  string `json:"request_hex"`
	Response string `json:"response_hex"`
}

func exchanges(t *testing.T) (list []exchange) {
	t.Helper()
	f, err := os.Open("testdata/kafka/requests.jsonl.gz")
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
		var x exchange
		if err := json.Unmarshal(s.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	if err := s.Err(); err != nil || len(list) != 44 {
		t.Fatalf("%d exchanges: %v", len(list), err)
	}
	return list
}

// TestAnswersAreKafkas sends the frames that Kafka 4.4 was sent, good, odd and wrong
// ones, to a broker of ours, and compares the answers field by field. Only the
// random part of member ids may differ: later frames are sent with ours in place of
// Kafka's.
func TestAnswersAreKafkas(t *testing.T) {
	b := brokertest.Start(t)
	createTopic(t, client(t, b), "h", 2)
	conn, err := b.Dial(context.Background(), "tcp", b.Seeds()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ids := map[string]string{} // Kafka's member id -> ours, of the same length
	for _, x := range exchanges(t) {
		frame := unhexed(t, x.Request)
		for theirs, ours := range ids {
			frame = bytes.ReplaceAll(frame, []byte(theirs), []byte(ours))
		}
		got := decode(t, frame, roundTrip(t, conn, frame))
		want := decode(t, frame, unhexed(t, x.Response))
		learn(ids, got, want)
		for theirs, ours := range ids {
			replaceIDs(reflect.ValueOf(got), ours, theirs)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", x.What, asJSON(t, got), asJSON(t, want))
		}
	}
}

func unhexed(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// roundTrip sends a frame and reads the answer, without its length.
func roundTrip(t *testing.T, conn net.Conn, frame []byte) []byte {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(frame); err != nil {
		t.Fatal(err)
	}
	size := make([]byte, 4)
	if _, err := io.ReadFull(conn, size); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(size))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// decode reads the response to a request, a whole frame.
func decode(t *testing.T, request, response []byte) kmsg.Response {
	t.Helper()
	req := kmsg.RequestForKey(int16(binary.BigEndian.Uint16(request[4:])))
	req.SetVersion(int16(binary.BigEndian.Uint16(request[6:])))
	resp := req.ResponseKind()
	body := response[4:] // behind the correlation id
	if req.IsFlexible() {
		body = body[1:]
	}
	if err := resp.ReadFrom(body); err != nil {
		t.Fatalf("%T: %v in %x", resp, err, response)
	}
	if r, ok := resp.(*kmsg.JoinGroupResponse); ok {
		slices.SortFunc(r.Members, func(a, b kmsg.JoinGroupResponseMember) int { return strings.Compare(a.MemberID, b.MemberID) })
	}
	return resp
}

// learn notes the member id that a join was given here and there.
func learn(ids map[string]string, got, want kmsg.Response) {
	ours, ok := got.(*kmsg.JoinGroupResponse)
	if !ok {
		return
	}
	theirs := want.(*kmsg.JoinGroupResponse)
	if len(ours.MemberID) == len(theirs.MemberID) && len(theirs.MemberID) > 36 {
		ids[theirs.MemberID] = ours.MemberID
	}
	slices.SortFunc(ours.Members, func(a, b kmsg.JoinGroupResponseMember) int {
		return strings.Compare(theirID(ids, a.MemberID), theirID(ids, b.MemberID))
	})
}

func theirID(ids map[string]string, ours string) string {
	for theirs, o := range ids {
		if o == ours {
			return theirs
		}
	}
	return ours
}

// replaceIDs replaces a string wherever it is in a response.
func replaceIDs(v reflect.Value, from, to string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			replaceIDs(v.Elem(), from, to)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				replaceIDs(f, from, to)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			replaceIDs(v.Index(i), from, to)
		}
	case reflect.String:
		if v.String() == from {
			v.SetString(to)
		}
	}
}

// cluster is what the tests need of a broker.
type cluster interface {
	Seeds() []string
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// tcp is a cluster behind one address.
type tcp string

// Seeds implements cluster.
func (a tcp) Seeds() []string { return []string{string(a)} }

// Dial implements cluster.
func (a tcp) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// client makes a franz-go client that is closed with the test.
func client(t testing.TB, b cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func createTopic(t testing.TB, cl *kgo.Client, name string, partitions int32) {
	t.Helper()
	r := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	r.Topics, r.TimeoutMillis = append(r.Topics, topic), 10_000
	resp, err := r.RequestWith(context.Background(), cl)
	if err != nil || resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("create topic %s: %v %+v", name, err, resp)
	}
}
