package api

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/listener"
)

// Serve decodes one frame and hands it to the API's handler. It implements
// listener.Service.
func (s *Server) Serve(p *listener.Peer, f *listener.Frame, answer func(*listener.Answer)) error {
	c := &Call{Principal: p.Principal, Host: p.Host, Listener: p.Listener, Local: p.Local, frame: f, gone: p.Gone()}
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
	s.served[c.Key].Add(1)
	if r.raw != nil {
		return r.raw(s, c, body, answer)
	}
	req := r.newRequest()
	req.SetVersion(c.Version)
	if err := s.decode(req, body); err != nil {
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

// largeRequest is the size in bytes from which on requests are decoded one at a time.
const largeRequest = 64 << 10

// decode decodes a request. An array may claim as many elements as would fit into the
// bytes that are left, so a hostile request takes up to 32 times its size until the
// decoder finds out; large ones wait for each other, so that many connections do not
// take that many times as much.
func (s *Server) decode(req kmsg.Request, body []byte) error {
	if len(body) >= largeRequest {
		s.decoding.Lock()
		defer s.decoding.Unlock()
	}
	return req.ReadFrom(body)
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
