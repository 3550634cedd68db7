package group_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// wire is a connection that speaks frames, for what a client library would hide.
type wire struct {
	conn  net.Conn
	frame []byte
	size  [4]byte
	body  []byte
}

func dial(t testing.TB, b *broker.Broker) *wire {
	t.Helper()
	conn, err := b.Dial(context.Background(), "tcp", b.Seeds()[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &wire{conn: conn}
}

// exchange sends the frame that was made last and reads the answer behind its
// correlation id.
func (w *wire) exchange() ([]byte, error) {
	if _, err := w.conn.Write(w.frame); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(w.conn, w.size[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(w.size[:]))
	if cap(w.body) < n {
		w.body = make([]byte, n)
	}
	w.body = w.body[:n]
	if _, err := io.ReadFull(w.conn, w.body); err != nil {
		return nil, err
	}
	return w.body[4:], nil
}

func (w *wire) set(req kmsg.Request) {
	w.frame = kmsg.NewRequestFormatter(kmsg.FormatterClientID("c")).AppendRequest(nil, req, 1)
}

// do sends a request and reads its response.
func (w *wire) do(req kmsg.Request) (kmsg.Response, error) {
	w.set(req)
	body, err := w.exchange()
	if err != nil {
		return nil, err
	}
	if req.IsFlexible() {
		body = body[1:]
	}
	resp := req.ResponseKind()
	return resp, resp.ReadFrom(body)
}

// stable makes a stable group of one member and returns its id.
func (w *wire) stable(group string) (member string, err error) {
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.ProtocolType = 3, group, "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 1_000_000, 60_000
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
	var joined *kmsg.JoinGroupResponse
	for { // COORDINATOR_LOAD_IN_PROGRESS at first
		r, err := w.do(join)
		if err != nil {
			return "", err
		}
		if joined = r.(*kmsg.JoinGroupResponse); joined.ErrorCode != kerr.CoordinatorLoadInProgress.Code {
			break
		}
	}
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.Generation, sync.MemberID = 3, group, joined.Generation, joined.MemberID
	r, err := w.do(sync)
	if err == nil && (joined.ErrorCode != 0 || r.(*kmsg.SyncGroupResponse).ErrorCode != 0) {
		err = fmt.Errorf("group %s: join %d, sync %d", group, joined.ErrorCode, r.(*kmsg.SyncGroupResponse).ErrorCode)
	}
	return joined.MemberID, err
}

// TestAllocationsOfTheBroker counts what a heartbeat and a commit cost the whole
// way: connection (its deadlines alone are four), frame, decoding, machine, log,
// answer.
func TestAllocationsOfTheBroker(t *testing.T) {
	b := brokertest.Start(t)
	createTopic(t, client(t, b), "in", 1)
	w := dial(t, b)
	member, err := w.stable("g")
	if err != nil {
		t.Fatal(err)
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Version, beat.Group, beat.Generation, beat.MemberID = 3, "g", 1, member
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Version, commit.Group, commit.Generation, commit.MemberID = 7, "g", 1, member
	commit.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "in", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 5}}}}
	for _, c := range []struct {
		req  kmsg.Request
		most float64
	}{{beat, 25}, {commit, 40}} {
		w.set(c.req)
		n := testing.AllocsPerRun(500, func() {
			if _, err := w.exchange(); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%T: %v allocations", c.req, n)
		if n > c.most {
			t.Errorf("%T allocates %v times, want at most %v", c.req, n, c.most)
		}
	}
}

// TestManyGroupsAtOnce: a thousand groups form at once from many connections, and
// no one starves (G16).
func TestManyGroupsAtOnce(t *testing.T) {
	b := brokertest.Start(t)
	errs := make(chan error, 20)
	var wg sync.WaitGroup
	for i := range 20 {
		w := dial(t, b)
		wg.Go(func() {
			for k := range 50 {
				if _, err := w.stable(fmt.Sprintf("g-%d-%d", i, k)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
}

func BenchmarkBroker(b *testing.B) {
	const groups = 10_000
	for _, name := range []string{"heartbeat", "commit"} {
		b.Run(name, func(b *testing.B) {
			broker := brokertest.Start(b)
			createTopic(b, client(b, broker), "in", 1)
			w := dial(b, broker)
			frames := make([][]byte, groups)
			for i := range frames {
				g := fmt.Sprintf("g%d", i)
				member, err := w.stable(g)
				if err != nil {
					b.Fatal(err)
				}
				beat := kmsg.NewPtrHeartbeatRequest()
				beat.Version, beat.Group, beat.Generation, beat.MemberID = 3, g, 1, member
				w.set(beat)
				if name == "commit" {
					commit := kmsg.NewPtrOffsetCommitRequest()
					commit.Version, commit.Group, commit.Generation, commit.MemberID = 7, g, 1, member
					commit.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "in", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 5}}}}
					w.set(commit)
				}
				frames[i] = w.frame
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.frame = frames[i%len(frames)]
				if _, err := w.exchange(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
