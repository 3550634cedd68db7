package api

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/listener"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/replicas"
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
	// Local is the address of this side of the connection, without the port.
	Local string
	// Req is the decoded request. It may alias the frame, which is not used again
	// after the call, so handlers may keep parts of it.
	Req kmsg.Request

	frame *listener.Frame
	// gone is done when the connection has ended.
	gone context.Context
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
	// Settings are the broker's configuration as DescribeConfigs tells it, sorted
	// by name, without what topics take over.
	Settings []Setting
	// Static is what this broker was started with of what topics take over.
	Static metadata.Static
}

// Setting is one broker configuration under Kafka's name for it.
type Setting struct {
	Name, Value, Doc string
	Type             kmsg.ConfigType
}

// apiKeys bounds the keys of the protocol; the greatest of Kafka 4.4 is 92.
const apiKeys = 128

// Server answers the requests of all connections. Its fields are set before the
// first request and never change.
type Server struct {
	Config Config
	Clock  clock.Clock
	Logger *slog.Logger
	// Random is where ids of topics and of fetch sessions come from; it never fails.
	Random io.Reader

	Meta     *metadata.Store
	Replicas *replicas.Manager
	// Authorize is never nil.
	Authorize Authorize
	// Advertised gives the address that clients of a listener are told to use; local
	// is this side of their connection.
	Advertised func(listener, local string) (host string, port int32)

	coordinators

	rotation atomic.Uint64 // where the next Fetch begins to read
	waker    waker
	sessions sessions
	turns    turns // of transactional producers, see there

	decoding sync.Mutex // held while a large request is decoded

	served [apiKeys]atomic.Int64 // requests by API key, those that failed too
}

// Start must be called before the first request.
func (s *Server) Start() { s.waker.start(s.Clock) }

// Stop answers all parked fetches. It is called when the partitions are closed,
// which wakes them, and before the connections are.
func (s *Server) Stop() { s.waker.stop() }
