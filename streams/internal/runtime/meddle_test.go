package runtime_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/streams/internal/runtime"
)

// meddler is a cluster whose traffic passes a hook, request by request: it may hold
// requests up, lose answers and change them.
type meddler struct {
	runtime.Cluster
	// request is called before a request goes out, and may take its time. answer is
	// called with what came back; an error loses it, and the connection. Both may
	// be nil.
	request func(key kmsg.Key)
	answer  func(resp kmsg.Response) error
}

func (m *meddler) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := m.Cluster.Dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &meddled{Conn: c, m: m, asked: map[int32][2]int16{}}, nil
}

// meddled is one connection.
type meddled struct {
	net.Conn
	m *meddler

	mu    sync.Mutex
	asked map[int32][2]int16 // key and version, by correlation id

	out []byte // written, not yet a whole request
	in  []byte // an answer, not yet read
}

// Write implements net.Conn.
func (c *meddled) Write(b []byte) (int, error) {
	c.out = append(c.out, b...)
	for len(c.out) >= 12 && len(c.out) >= 4+int(binary.BigEndian.Uint32(c.out)) {
		key, version := int16(binary.BigEndian.Uint16(c.out[4:])), int16(binary.BigEndian.Uint16(c.out[6:]))
		c.mu.Lock()
		c.asked[int32(binary.BigEndian.Uint32(c.out[8:]))] = [2]int16{key, version}
		c.mu.Unlock()
		c.out = c.out[4+int(binary.BigEndian.Uint32(c.out)):]
		if c.m.request != nil {
			c.m.request(kmsg.Key(key))
		}
	}
	return c.Conn.Write(b)
}

// Read implements net.Conn.
func (c *meddled) Read(b []byte) (int, error) {
	if len(c.in) == 0 {
		var size [4]byte
		if _, err := io.ReadFull(c.Conn, size[:]); err != nil {
			return 0, err
		}
		frame := append(size[:], make([]byte, binary.BigEndian.Uint32(size[:]))...)
		if _, err := io.ReadFull(c.Conn, frame[4:]); err != nil {
			return 0, err
		}
		var err error
		if c.in, err = c.pass(frame); err != nil {
			return 0, errors.Join(err, c.Close())
		}
	}
	n := copy(b, c.in)
	c.in = c.in[n:]
	return n, nil
}

// pass shows an answer to the hook.
func (c *meddled) pass(frame []byte) ([]byte, error) {
	id := int32(binary.BigEndian.Uint32(frame[4:]))
	c.mu.Lock()
	asked := c.asked[id]
	delete(c.asked, id)
	c.mu.Unlock()
	key := kmsg.Key(asked[0])
	if c.m.answer == nil || key == kmsg.ApiVersions || key == kmsg.Fetch {
		return frame, nil
	}
	resp := kmsg.ResponseForKey(asked[0])
	resp.SetVersion(asked[1])
	head := 8
	if resp.IsFlexible() {
		head++ // no tags
	}
	if err := resp.ReadFrom(frame[head:]); err != nil {
		return nil, err
	}
	if err := c.m.answer(resp); err != nil {
		return nil, err
	}
	changed := resp.AppendTo(append([]byte{}, frame[:head]...))
	binary.BigEndian.PutUint32(changed, uint32(len(changed)-4))
	return changed, nil
}
