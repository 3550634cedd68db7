package cases

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// answerLimit bounds the wait for one answer; it is no measurement, only the end of a hang.
const answerLimit = 30 * time.Second

// wire is one connection that sends requests as they are given, and reads answers in order.
type wire struct {
	t    testing.TB
	conn net.Conn
	id   atomic.Int32
}

func (w *wire) close() {
	if err := w.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		w.t.Logf("closing a connection: %v", err)
	}
}

// frame encodes a request with its length, so that a case can send the very same bytes again.
func (w *wire) frame(req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("cases")).AppendRequest(nil, req, w.id.Add(1))
}

func (w *wire) send(frame []byte) error {
	if err := w.conn.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return err
	}
	_, err := w.conn.Write(frame)
	return err
}

// receive reads the next answer and decodes it as the answer to req.
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
			return nil, fmt.Errorf("answer to %s v%d has no empty tag section in its header", kmsg.NameForKey(req.Key()), req.GetVersion())
		}
		body = body[1:]
	}
	return resp, resp.ReadFrom(body)
}

// try sends a request and returns its answer or what broke.
func (w *wire) try(req kmsg.Request) (kmsg.Response, error) {
	if err := w.send(w.frame(req)); err != nil {
		return nil, err
	}
	return w.receive(req)
}

// do is try for requests that must be answered.
func (w *wire) do(req kmsg.Request) kmsg.Response {
	w.t.Helper()
	resp, err := w.try(req)
	if err != nil {
		w.t.Fatalf("%s v%d: %v", kmsg.NameForKey(req.Key()), req.GetVersion(), err)
	}
	return resp
}

// code names an error code as Kafka does, for messages.
func code(c int16) string {
	if c == 0 {
		return "NONE"
	}
	if err := kerr.TypedErrorForCode(c); err != nil {
		return err.Message
	}
	return fmt.Sprint(c)
}

func want(t testing.TB, what string, got int16, allowed ...*kerr.Error) {
	t.Helper()
	names := ""
	for _, a := range allowed {
		c := int16(0)
		if a != nil {
			c = a.Code
		}
		if got == c {
			return
		}
		names += " " + code(c)
	}
	t.Fatalf("%s: got %s, want%s", what, code(got), names)
}
