package kill

import (
	bits "encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/record"
)

// calls are the system calls of a process that read and write, as Linux counts them: a sendfile is one of each, and so is a read that
// finds nothing and waits.
type calls struct{ reads, writes int64 }

func (s *server) calls() (c calls) {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", s.cmd.Process.Pid))
	if err != nil {
		s.t.Skip(err)
	}
	for line := range strings.Lines(string(text)) {
		var name string
		var n int64
		if _, err := fmt.Sscanf(line, "%s %d", &name, &n); err != nil {
			continue
		}
		switch name {
		case "syscr:":
			c.reads = n
		case "syscw:":
			c.writes = n
		}
	}
	return c
}

// plainConn is a connection that sends frames and throws answers away.
type plainConn struct {
	*testing.T
	net.Conn
}

func (c plainConn) send(frame []byte) {
	c.Helper()
	if _, err := c.Write(frame); err != nil {
		c.Fatal(err)
	}
}

func (c plainConn) answers(n int) {
	c.Helper()
	for range n {
		var size [4]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			c.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, c, int64(bits.BigEndian.Uint32(size[:]))); err != nil {
			c.Fatal(err)
		}
	}
}

func frameOf(req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("calls")).AppendRequest(nil, req, 1)
}

func produceFrame(t *testing.T, acks int16, valueBytes int) []byte {
	t.Helper()
	var b record.Builder
	b.Append(1_700_000_000_000, nil, make([]byte, valueBytes), nil)
	batch, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, acks, 30_000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = plainTopic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Records = append([]byte(nil), batch...)
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return frameOf(req)
}

func fetchFrame(maxBytes int32) []byte {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID, req.MinBytes, req.MaxBytes, req.SessionEpoch = 11, -1, 1, maxBytes, -1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = plainTopic
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.CurrentLeaderEpoch, rp.PartitionMaxBytes = -1, maxBytes
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return frameOf(req)
}

// TestSystemCallsPerRequest counts the reads and writes that the server makes for a request: one after the other, and pipelined, where
// many requests share a read and many answers a write. What is allowed is a little more than what it takes, for the server's clockwork.
func TestSystemCallsPerRequest(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts are Linux's")
	}
	s := startServer(t, "--durability", "os", "--scrub-bytes-per-second", "-1")
	createTopics(t, s.addr)
	nc, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := plainConn{t, nc}
	const large = 256 << 10
	for range 4 {
		c.send(produceFrame(t, 1, large))
		c.answers(1)
	}
	for _, w := range []struct {
		name          string
		frame         []byte
		n, atOnce     int
		reads, writes float64 // for a request, at most
	}{
		// A read that brings the request, and one that finds nothing and waits for the next; the answer.
		{"a question", frameOf(kmsg.NewPtrApiVersionsRequest()), 500, 1, 2.6, 1.6},
		{"questions, 50 at once", frameOf(kmsg.NewPtrApiVersionsRequest()), 2500, 50, 0.3, 0.4},
		// The same, and the append, which is one write.
		{"a produce from the page cache", produceFrame(t, 1, 100), 500, 1, 2.6, 2.7},
		{"produces, 50 at once", produceFrame(t, 1, 100), 2500, 50, 0.4, 1.4},
		// The answer's head, and the sendfile, which may have to wait for room in the socket.
		{"a fetch of 256 KiB", fetchFrame(large), 100, 1, 8, 7},
	} {
		frames := make([]byte, 0, w.atOnce*len(w.frame))
		for range w.atOnce {
			frames = append(frames, w.frame...)
		}
		before := s.calls()
		for range w.n / w.atOnce {
			c.send(frames)
			c.answers(w.atOnce)
		}
		after := s.calls()
		reads, writes := float64(after.reads-before.reads)/float64(w.n), float64(after.writes-before.writes)/float64(w.n)
		t.Logf("%s: %.2f reads, %.2f writes", w.name, reads, writes)
		if reads > w.reads || writes > w.writes {
			t.Errorf("%s: %.2f reads and %.2f writes for each, at most %.1f and %.1f", w.name, reads, writes, w.reads, w.writes)
		}
	}
}
