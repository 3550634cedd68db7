package broker_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// Every handler asks the authorise hook: when it refuses everything, nothing that
// a client asks for succeeds.
func TestNothingSucceedsWithoutAuthorization(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP(), brokertest.Configure(func(c *broker.Config) {
		c.Authorize = func(a broker.Access) bool {
			if a.Principal != "User:ANONYMOUS" || a.Operation == "" || a.Resource == "" || a.Name == "" {
				t.Errorf("the hook was asked about %+v", a)
			}
			return false
		}
	}))
	served := servedVersions(t, b)
	refusals := map[int16]bool{}
	for _, e := range []*kerr.Error{kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed,
		kerr.TransactionalIDAuthorizationFailed} {
		refusals[e.Code] = true
	}
	// UNKNOWN_TOPIC_ID hides whether a topic exists; an offset fetch for a topic
	// that may not be described lists nothing.
	refusals[kerr.UnknownTopicID.Code] = true
	open := map[int16]bool{18: true, 60: true} // ApiVersions and DescribeCluster tell nothing of value
	checked, asked := map[int16]bool{}, map[int16]bool{}
	eachLine(t, "testdata/captures.jsonl.gz", func(line []byte) {
		var c capture
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if _, ok := served[c.Key]; !ok || c.Response == "" || open[c.Key] {
			return
		}
		resp := ask(t, b, c)
		if resp == nil {
			return
		}
		asked[c.Key] = true
		walk(reflect.ValueOf(resp).Elem(), "", func(path string, v reflect.Value) {
			if !strings.HasSuffix(path, "ErrorCode") || strings.HasSuffix(path, "ConfigErrorCode") {
				return
			}
			if refusals[int16(v.Int())] {
				checked[c.Key] = true
			}
		})
		if s := succeeded(resp); s != "" {
			t.Errorf("%s version %d of %s: %s", c.API, c.Version, c.Client, s)
		}
	})
	// ListTransactions and ListGroups have no refusal: what may not be described is left out, and succeeded looks for rows.
	checked[kmsg.ListTransactions.Int16()] = true
	checked[kmsg.ListGroups.Int16()] = true
	for key := range asked {
		if !checked[key] {
			t.Errorf("%s was never refused", kmsg.NameForKey(key))
		}
	}
}

// succeeded says what of an answer is a success, "" for nothing.
func succeeded(resp kmsg.Response) string {
	switch r := resp.(type) {
	case *kmsg.ProduceResponse:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 {
					return fmt.Sprintf("%s-%d was written", t.Topic, p.Partition)
				}
			}
		}
	case *kmsg.FetchResponse:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode == 0 {
					return fmt.Sprintf("%s-%d was read", t.Topic, p.Partition)
				}
			}
		}
	case *kmsg.ListTransactionsResponse:
		for _, t := range r.TransactionStates {
			return t.TransactionalID + " was listed"
		}
	case *kmsg.ListGroupsResponse:
		for _, g := range r.Groups {
			return g.Group + " was listed"
		}
	case *kmsg.CreateTopicsResponse:
		for _, t := range r.Topics {
			if t.ErrorCode == 0 {
				return t.Topic + " was created"
			}
		}
	case *kmsg.MetadataResponse:
		for _, t := range r.Topics {
			if t.ErrorCode == 0 {
				return "a topic was described"
			}
		}
	case *kmsg.InitProducerIDResponse:
		if r.ErrorCode == 0 {
			return "a producer id was given"
		}
	case *kmsg.JoinGroupResponse:
		if r.ErrorCode == 0 {
			return "a group was joined"
		}
	case *kmsg.EndTxnResponse:
		if r.ErrorCode == 0 {
			return "a transaction was ended"
		}
	}
	return ""
}

func ask(t *testing.T, b *broker.Broker, c capture) kmsg.Response {
	t.Helper()
	raw, err := hex.DecodeString(c.Request)
	if err != nil {
		t.Fatal(err)
	}
	nc := dialTCP(t, b)
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Write(raw); err != nil {
		t.Fatal(err)
	}
	body, err := readAnswer(nc)
	if err != nil {
		t.Errorf("%s version %d: %v", c.API, c.Version, err)
		return nil
	}
	resp := kmsg.ResponseForKey(c.Key)
	resp.SetVersion(c.Version)
	if err := decodeAnswer(resp, body); err != nil {
		t.Errorf("%s version %d: %v", c.API, c.Version, err)
		return nil
	}
	return resp
}

// Each listener advertises an address that its clients can reach.
func TestAdvertisedAddresses(t *testing.T) {
	told := func(b *broker.Broker, c net.Conn) string {
		t.Helper()
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		req := kmsg.NewPtrMetadataRequest()
		req.Version = 9
		if _, err := c.Write(format(req)); err != nil {
			t.Fatal(err)
		}
		body, err := readAnswer(c)
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		if err == nil {
			err = decodeAnswer(resp, body)
		}
		if err != nil || len(resp.Brokers) != 1 {
			t.Fatalf("brokers %v, %v", resp.Brokers, err)
		}
		return fmt.Sprintf("%s:%d", resp.Brokers[0].Host, resp.Brokers[0].Port)
	}
	memory := func(b *broker.Broker) net.Conn {
		t.Helper()
		c, err := b.Dial(background(t), "tcp", b.Seeds()[0])
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	everywhere := brokertest.Start(t, brokertest.Configure(func(c *broker.Config) { c.Listen = ":0" }))
	port := everywhere.Addr().(*net.TCPAddr).Port
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := told(everywhere, c), fmt.Sprintf("127.0.0.1:%d", port); got != want {
		t.Errorf("a client of all interfaces is told %s, want the one it came in on, %s", got, want)
	}
	if got, want := told(everywhere, memory(everywhere)), everywhere.Seeds()[0]; got != want {
		t.Errorf("a client of Dial is told %s, want %s", got, want)
	}
	proxied := brokertest.Start(t, brokertest.OnTCP(), brokertest.Configure(func(c *broker.Config) { c.Advertise = "proxy.example:1234" }))
	if got := told(proxied, dialTCP(t, proxied)); got != "proxy.example:1234" {
		t.Errorf("a client behind a proxy is told %s", got)
	}
}
