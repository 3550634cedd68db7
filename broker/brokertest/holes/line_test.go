package holes

import (
	"context"
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
)

// patience bounds every wait; only a fault reaches it.
const patience = time.Minute

// line dials a node and looks at the Produce requests that go out: what acks they ask for. It can hold back what comes in
// behind one.
type line struct {
	node *brokertest.Node

	mu   sync.Mutex
	acks []int16
	// hold is called after the next Produce request was sent, instead of reading its answer; then the connection breaks.
	hold func()
}

func (l *line) Seeds() []string { return l.node.Seeds() }

func (l *line) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := l.node.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &watched{Conn: c, line: l}, nil
}

func (l *line) asked() []int16 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acks)
}

type watched struct {
	net.Conn
	line *line

	mu   sync.Mutex
	out  []byte // of a frame that is not whole yet
	hold func()
}

// Write passes on, and reads along.
func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.out = append(w.out, p...)
	for len(w.out) >= 4 && len(w.out) >= 4+int(binary.BigEndian.Uint32(w.out)) {
		n := 4 + int(binary.BigEndian.Uint32(w.out))
		w.frame(w.out[4:n])
		w.out = w.out[n:]
	}
	w.mu.Unlock()
	return w.Conn.Write(p)
}

func (w *watched) frame(b []byte) {
	if binary.BigEndian.Uint16(b) != uint16(kmsg.Produce) {
		return
	}
	version := int16(binary.BigEndian.Uint16(b[2:]))
	body := b[10+max(0, int(int16(binary.BigEndian.Uint16(b[8:])))):]
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(version)
	if req.IsFlexible() {
		body = body[1:] // no tags in the header
	}
	if err := req.ReadFrom(body); err != nil {
		panic(err) // the broker would not read it either
	}
	w.line.mu.Lock()
	defer w.line.mu.Unlock()
	w.line.acks = append(w.line.acks, req.Acks)
	w.hold, w.line.hold = w.line.hold, nil
}

// Read passes on, unless an answer is held back.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.mu.Lock()
	hold := w.hold
	w.mu.Unlock()
	if hold == nil {
		return n, err
	}
	hold()
	return 0, net.ErrClosed
}

func client(t *testing.T, c interface {
	Seeds() []string
	Dial(context.Context, string, string) (net.Conn, error)
}, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Seeds()...), kgo.Dialer(c.Dial)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func createTopic(t *testing.T, n *brokertest.Node) {
	t.Helper()
	if _, err := kadm.NewClient(client(t, n)).CreateTopic(t.Context(), 1, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
}

// end is the high watermark of the topic's partition.
func end(t *testing.T, n *brokertest.Node) int64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ends, err := kadm.NewClient(client(t, n)).ListEndOffsets(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	o, ok := ends.Lookup("t", 0)
	if !ok || o.Err != nil {
		t.Fatalf("end offset: %+v", o)
	}
	return o.Offset
}
