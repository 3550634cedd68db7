package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// wire is a connection on which a workload says when to write and when to read: a client that is slow, or many of them,
// at little cost of their own.
type wire struct {
	conn net.Conn
	n    int32 // correlation id of the last request
}

func dialWire(addr string) (*wire, error) {
	c, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &wire{conn: c}, c.SetDeadline(time.Now().Add(2 * time.Minute))
}

// send writes a request, whose version has to be set.
func (w *wire) send(req kmsg.Request) error {
	w.n++
	_, err := w.conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, w.n))
	return err
}

// skip reads an answer and drops it; it returns its length.
func (w *wire) skip() (int64, error) {
	var head [4]byte
	if _, err := io.ReadFull(w.conn, head[:]); err != nil {
		return 0, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	_, err := io.CopyN(io.Discard, w.conn, n)
	return n, err
}

// receive reads an answer into resp.
func (w *wire) receive(resp kmsg.Response) error {
	var head [4]byte
	if _, err := io.ReadFull(w.conn, head[:]); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(w.conn, body); err != nil {
		return err
	}
	skip := 4 // correlation id
	if resp.IsFlexible() {
		skip++ // no tags
	}
	if len(body) < skip {
		return fmt.Errorf("answer of %d bytes", len(body))
	}
	return resp.ReadFrom(body[skip:])
}

// fetchOf asks one partition for at most that many bytes from offset, without a session; the answer comes at once.
func fetchOf(topic kadm.TopicDetail, partition int32, offset int64, bytes int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version = 13
	req.MaxBytes, req.MinBytes, req.SessionEpoch = bytes, 0, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic.Topic, topic.ID
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, bytes
	p.CurrentLeaderEpoch = -1
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// fetchOnce sends a fetch and checks that records came.
func (w *wire) fetchOnce(req *kmsg.FetchRequest) error {
	if err := w.send(req); err != nil {
		return err
	}
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = req.Version
	if err := w.receive(resp); err != nil {
		return err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return fmt.Errorf("fetch: %d topics in the answer, error code %d", len(resp.Topics), resp.ErrorCode)
	}
	if p := resp.Topics[0].Partitions[0]; p.ErrorCode != 0 || len(p.RecordBatches) == 0 {
		return fmt.Errorf("fetch of partition %d: error code %d, %d bytes", p.Partition, p.ErrorCode, len(p.RecordBatches))
	}
	return nil
}

// detail is what a topic's metadata say.
func (e *env) detail(ctx context.Context, topic string) (d kadm.TopicDetail, err error) {
	err = e.admin(ctx, func(ctx context.Context, adm *kadm.Client) error {
		m, err := adm.Metadata(ctx, topic)
		if err != nil {
			return err
		}
		d = m.Topics[topic]
		return d.Err
	})
	return d, err
}
