package crash

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// patience bounds the wait for one answer; it is no measurement, only the end of a hang.
const patience = 20 * time.Second

// cluster is what the tests need of a broker or a node.
type cluster interface {
	Seeds() []string
	Dial(ctx context.Context, network, addr string) (net.Conn, error)
}

// wire is one connection that sends requests as they are given.
type wire struct {
	t    testing.TB
	conn net.Conn
	next int32
	// hopeless, when set, tells that asking again will not help.
	hopeless func() bool
}

func dial(t testing.TB, c cluster) *wire {
	t.Helper()
	conn, err := c.Dial(context.Background(), "tcp", c.Seeds()[0])
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	w := &wire{t: t, conn: conn}
	t.Cleanup(w.close)
	return w
}

func (w *wire) close() {
	if err := w.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		w.t.Logf("closing a connection: %v", err)
	}
}

// frame encodes a request with its length, so that a test can send the same bytes again.
func (w *wire) frame(req kmsg.Request) []byte {
	w.next++
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("crash")).AppendRequest(nil, req, w.next)
}

func (w *wire) send(frame []byte) error {
	if err := w.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := w.conn.Write(frame)
	return err
}

// receive reads the next answer as the answer to req.
func (w *wire) receive(req kmsg.Request) (kmsg.Response, error) {
	var head [8]byte
	if _, err := io.ReadFull(w.conn, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, int(binary.BigEndian.Uint32(head[:4]))-4)
	if _, err := io.ReadFull(w.conn, body); err != nil {
		return nil, err
	}
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	if resp.IsFlexible() && req.Key() != kmsg.ApiVersions.Int16() {
		if len(body) == 0 || body[0] != 0 {
			return nil, errors.New("no empty tag section in the answer's header")
		}
		body = body[1:]
	}
	return resp, resp.ReadFrom(body)
}

// do sends a request that must be answered.
func (w *wire) do(req kmsg.Request) kmsg.Response {
	w.t.Helper()
	err := w.send(w.frame(req))
	if err == nil {
		var resp kmsg.Response
		if resp, err = w.receive(req); err == nil {
			return resp
		}
	}
	w.t.Fatalf("%s v%d: %v", kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	return nil
}

// until repeats a request while its answer is one that clients repeat on, and returns the last one's code.
func (w *wire) until(ask func() int16) int16 {
	end := time.Now().Add(patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		c := ask()
		loading := c == kerr.CoordinatorLoadInProgress.Code // which ends, one way or the other
		if !retriable(c) || time.Now().After(end) || w.hopeless != nil && w.hopeless() && !loading {
			return c
		}
		<-tick.C
	}
}

func retriable(c int16) bool {
	return slices.Contains([]int16{kerr.ConcurrentTransactions.Code, kerr.CoordinatorLoadInProgress.Code,
		kerr.NotCoordinator.Code, kerr.NotEnoughReplicas.Code,
		kerr.NotLeaderForPartition.Code, kerr.UnstableOffsetCommit.Code}, c)
}

// code names an error code.
func code(c int16) string {
	if c == 0 {
		return "NONE"
	}
	if err := kerr.TypedErrorForCode(c); err != nil {
		return err.Message
	}
	return fmt.Sprint(c)
}

// must repeats a request until its answer is NONE, and ends the test on another one.
func (w *wire) must(what string, ask func() int16) {
	w.t.Helper()
	if c := w.until(ask); c != 0 {
		w.t.Fatalf("%s: %s", what, code(c))
	}
}
