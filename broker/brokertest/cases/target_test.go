package cases

import (
	"context"
	"crypto/rand"
	"flag"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var brokersFlag = flag.String("brokers", "", "run against this cluster (host:port,…) instead of the embedded broker")

// dialer is what a target offers: the embedded broker or an address.
type dialer interface {
	Seeds() []string
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

type external struct {
	net.Dialer
	seeds []string
}

func (e *external) Seeds() []string { return e.seeds }
func (e *external) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return e.DialContext(ctx, network, addr)
}

// target is one case's view of the cluster: unique names, connections that end with the case, a few questions.
type target struct {
	*testing.T
	cluster dialer
	own     ownBroker // nil against an address
	prefix  string
	mu      sync.Mutex
	conns   []*wire
}

func newTarget(t *testing.T, cluster dialer, own ownBroker) *target {
	tg := &target{T: t, cluster: cluster, own: own, prefix: strings.ToLower(rand.Text()[:8])}
	t.Cleanup(tg.hangUp)
	return tg
}

func (tg *target) hangUp() {
	tg.mu.Lock()
	defer tg.mu.Unlock()
	for _, w := range tg.conns {
		w.close()
	}
	tg.conns = nil
}

// name makes a name that no other case or run uses.
func (tg *target) name(s string) string { return tg.prefix + "-" + s }

func (tg *target) dial(addr string) *wire {
	tg.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), answerLimit)
	defer cancel()
	c, err := tg.cluster.Dial(ctx, "tcp", addr)
	if err != nil {
		tg.Fatalf("dial %s: %v", addr, err)
	}
	w := &wire{t: tg, conn: c}
	tg.mu.Lock()
	tg.conns = append(tg.conns, w)
	tg.mu.Unlock()
	return w
}

func (tg *target) seed() *wire { tg.Helper(); return tg.dial(tg.cluster.Seeds()[0]) }

// eventually repeats f until it reports true; it ends with what f last said when the limit is over.
func (tg *target) eventually(what string, f func() (bool, string)) {
	tg.Helper()
	deadline := time.Now().Add(answerLimit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, said := f()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			tg.Fatalf("%s: %s", what, said)
		}
		<-tick.C
	}
}

func (tg *target) metadata(topic string) *kmsg.MetadataResponse {
	tg.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Version = 12
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &topic
	req.Topics = append(req.Topics, rt)
	return tg.seed().do(req).(*kmsg.MetadataResponse)
}

// leader opens a connection to the leader of a partition.
func (tg *target) leader(topic string, partition int32) *wire {
	tg.Helper()
	var addr string
	tg.eventually("leader of "+topic, func() (bool, string) {
		md := tg.metadata(topic)
		said := "no such partition"
		for _, p := range md.Topics[0].Partitions {
			if p.Partition != partition {
				continue
			}
			said = code(p.ErrorCode)
			for _, b := range md.Brokers {
				if b.NodeID == p.Leader {
					addr = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
				}
			}
		}
		return addr != "", said
	})
	return tg.dial(addr)
}

// coordinator opens a connection to the coordinator of a group (kind 0) or transactional id (kind 1).
func (tg *target) coordinator(kind int8, key string) *wire {
	tg.Helper()
	var addr string
	w := tg.seed()
	tg.eventually("coordinator of "+key, func() (bool, string) {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.Version = 4
		req.CoordinatorType = kind
		req.CoordinatorKeys = []string{key}
		c := w.do(req).(*kmsg.FindCoordinatorResponse).Coordinators[0]
		addr = net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
		return c.ErrorCode == 0, code(c.ErrorCode)
	})
	return tg.dial(addr)
}

// topic creates a topic under a unique name; config is key, value, key, value …
func (tg *target) topic(name string, partitions int32, config ...string) string {
	tg.Helper()
	full := tg.name(name)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 5
	req.TimeoutMillis = 30000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = full, partitions, 1
	for i := 0; i+1 < len(config); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = config[i], &config[i+1]
		rt.Configs = append(rt.Configs, c)
	}
	req.Topics = append(req.Topics, rt)
	resp := tg.seed().do(req).(*kmsg.CreateTopicsResponse)
	want(tg, "create "+full, resp.Topics[0].ErrorCode, nil)
	tg.eventually("metadata of "+full, func() (bool, string) {
		md := tg.metadata(full)
		c := md.Topics[0].ErrorCode
		return c == 0 && int32(len(md.Topics[0].Partitions)) == partitions, code(c)
	})
	// Metadata may know a leader that does not know it yet.
	for p := range partitions {
		tg.eventually("leader of "+full, func() (bool, string) {
			c := tg.leader(full, p).do(offsetRequest(full, p, -1, false)).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0].ErrorCode
			return c == 0, code(c)
		})
	}
	return full
}

func (tg *target) deleteTopic(topic string) {
	tg.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version = 4
	req.TimeoutMillis = 30000
	req.TopicNames = []string{topic}
	resp := tg.seed().do(req).(*kmsg.DeleteTopicsResponse)
	want(tg, "delete "+topic, resp.Topics[0].ErrorCode, nil)
	tg.eventually(topic+" gone", func() (bool, string) {
		c := tg.metadata(topic).Topics[0].ErrorCode
		return c == kerr.UnknownTopicOrPartition.Code, code(c)
	})
}

// offset asks ListOffsets; committed asks at read_committed. It returns offset and timestamp of the answer.
func (tg *target) offset(topic string, partition int32, ts int64, committed bool) (int64, int64) {
	tg.Helper()
	req := offsetRequest(topic, partition, ts, committed)
	p := tg.leader(topic, partition).do(req).(*kmsg.ListOffsetsResponse).Topics[0].Partitions[0]
	want(tg, "ListOffsets of "+topic, p.ErrorCode, nil)
	return p.Offset, p.Timestamp
}

func offsetRequest(topic string, partition int32, ts int64, committed bool) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version = 7
	req.ReplicaID = -1
	if committed {
		req.IsolationLevel = 1
	}
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.Partition, rp.Timestamp, rp.CurrentLeaderEpoch = partition, ts, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func (tg *target) end(topic string) int64 {
	tg.Helper()
	o, _ := tg.offset(topic, 0, -1, false)
	return o
}
func (tg *target) lso(topic string) int64 {
	tg.Helper()
	o, _ := tg.offset(topic, 0, -1, true)
	return o
}
