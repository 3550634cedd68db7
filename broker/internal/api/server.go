package api

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/listener"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/core/clock"
)

// Call is one request on its way through a handler. It stays valid until the
// handler has replied.
type Call struct {
	Key, Version  int16
	CorrelationID int32
	// ClientID is "" when the client sent null.
	ClientID  string
	Principal string
	Host      string
	// Listener names the listener of the connection; Metadata advertises another
	// address on each.
	Listener string
	// Req is the decoded request. It may alias the frame, which is not used again
	// after the call, so handlers may keep parts of it.
	Req kmsg.Request

	frame *listener.Frame
}

// Handler serves one API. It never blocks: it replies before it returns, or
// keeps reply and calls it later from any goroutine, but exactly once. reply(nil)
// sends nothing (a Produce with acks=0). The response's version is set by the
// server.
type Handler func(s *Server, c *Call, reply func(kmsg.Response))

// Authorize decides whether a principal may do something to a resource. It is
// called in every handler, before anything about the resource is told.
type Authorize func(principal string, op kmsg.ACLOperation, kind kmsg.ACLResourceType, name string) bool

// Config is what the handlers need to know of the broker's configuration. The
// broker package fills it; every field must be set.
type Config struct {
	NodeID            int32
	AutoCreateTopics  bool
	DefaultPartitions int32
	// MaxPartitionsPerRequest bounds what one CreateTopics may ask for.
	MaxPartitionsPerRequest int32
	// FetchMaxBytes bounds one Fetch answer, whatever the client asks for.
	FetchMaxBytes int32
}

// Server answers the requests of all connections. Its fields are set before the
// first request and never change.
type Server struct {
	Config Config
	Clock  clock.Clock
	Logger *slog.Logger

	Meta *metadata.Store
	// Authorize is never nil.
	Authorize Authorize
	// Advertised gives the address that clients of a listener are told to use.
	Advertised func(listener string) (host string, port int32)

	coordinators
}

// Both close the connection, as Kafka does.
var (
	errUnsupported = errors.New("unsupported API key or version")
	errMalformed   = errors.New("malformed request")
)

// Serve decodes one frame and hands it to the API's handler. It implements
// listener.Service.
func (s *Server) Serve(p *listener.Peer, f *listener.Frame, answer func(*listener.Answer)) error {
	c := &Call{Principal: p.Principal, Host: p.Host, Listener: p.Listener, frame: f}
	body, err := c.header(f.Bytes)
	if err != nil {
		return err
	}
	r := routeOf(c.Key)
	if r == nil {
		return fmt.Errorf("%w: key %d", errUnsupported, c.Key)
	}
	if c.Version < r.min || c.Version > r.max {
		if c.Key == keyAPIVersions {
			s.serveUnsupportedAPIVersions(c, answer)
			return nil
		}
		return fmt.Errorf("%w: %s version %d, served are %d to %d",
			errUnsupported, kmsg.NameForKey(c.Key), c.Version, r.min, r.max)
	}
	if r.raw != nil {
		return r.raw(s, c, body, answer)
	}
	req := kmsg.RequestForKey(c.Key)
	req.SetVersion(c.Version)
	if err := req.ReadFrom(body); err != nil {
		return fmt.Errorf("%w: %s version %d: %w", errMalformed, kmsg.NameForKey(c.Key), c.Version, err)
	}
	c.Req = req
	r.handle(s, c, func(resp kmsg.Response) {
		if resp == nil {
			answer(nil)
			return
		}
		resp.SetVersion(c.Version)
		a := listener.NewAnswer()
		a.Buf = c.responseHeader(a.Buf, resp.IsFlexible())
		a.Buf = resp.AppendTo(a.Buf)
		answer(a)
	})
	return nil
}

// responseHeader appends the correlation id and, for flexible versions, the
// empty tag section. ApiVersions never has one: its header is read before the
// client knows what the broker speaks (KIP-511).
func (c *Call) responseHeader(dst []byte, flexible bool) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.CorrelationID))
	if flexible && c.Key != keyAPIVersions {
		dst = append(dst, 0)
	}
	return dst
}

// header reads the request header and returns the body behind it.
func (c *Call) header(frame []byte) (body []byte, err error) {
	if len(frame) < 8 {
		return nil, fmt.Errorf("%w: a frame of %d bytes has no header", errMalformed, len(frame))
	}
	c.Key = int16(binary.BigEndian.Uint16(frame))
	c.Version = int16(binary.BigEndian.Uint16(frame[2:]))
	c.CorrelationID = int32(binary.BigEndian.Uint32(frame[4:]))
	frame = frame[8:]
	if len(frame) < 2 {
		return nil, fmt.Errorf("%w: no client id", errMalformed)
	}
	n := int(int16(binary.BigEndian.Uint16(frame)))
	frame = frame[2:]
	if n < -1 || n > len(frame) {
		return nil, fmt.Errorf("%w: client id of length %d in a frame with %d bytes left", errMalformed, n, len(frame))
	}
	if n > 0 {
		c.ClientID = string(frame[:n])
		frame = frame[n:]
	}
	if flexibleHeader(c.Key, c.Version) {
		return skipTags(frame)
	}
	return frame, nil
}

// maxTags bounds the tagged fields of a header, as Kafka 4.4 does.
const maxTags = 10_000

// skipTags passes over a tag section: clients may send tags that this broker
// does not know.
func skipTags(b []byte) ([]byte, error) {
	n, b, ok := uvarint(b)
	if !ok || n > maxTags {
		return nil, fmt.Errorf("%w: tag section of the header", errMalformed)
	}
	for range n {
		var size uint64
		if _, b, ok = uvarint(b); ok {
			size, b, ok = uvarint(b)
		}
		if !ok || size > uint64(len(b)) {
			return nil, fmt.Errorf("%w: tag in the header runs past the frame", errMalformed)
		}
		b = b[size:]
	}
	return b, nil
}

func uvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > 1<<32-1 {
		return 0, nil, false
	}
	return v, b[n:], true
}
