// Package seam lets tests replace what the broker stands on, without a word of
// it in the public configuration: the file system, the clock, chance, the limits
// of connections, the connections themselves. The replacement travels in the
// context given to broker.Start.
//
// A clock that is a [clock.Driver] takes the place of the broker's goroutines
// too: together with FS, Random and Serve nothing is left that a seed can not
// decide. That is how broker/internal/sim runs it.
package seam

import (
	"context"
	"io"
	"time"

	"github.com/millrace/millrace/broker/internal/listener"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/vfs"
)

// Options replace parts of the broker. Zero fields replace nothing.
type Options struct {
	// FS holds the data folder. With Config.Dir empty the folder is "data" in it,
	// and it is treated as durable.
	FS     vfs.FS
	Clock  clock.Clock
	Limits listener.Limits
	// CarryBytes is the size of an append journal, see flush.Options; tests of crashes want them to be full now and then.
	CarryBytes int64
	// OpenFiles is how many log files stay open without being used, see commitlog.NewFiles.
	OpenFiles int
	// RestEvery is how often idle log files are closed, see replicas.Manager.Rest. 0 is a second.
	RestEvery time.Duration
	// Random is where ids come from; nil is crypto/rand.
	Random io.Reader
	// Serve is given what answers requests, as the last thing of Start; no listener
	// is opened then, in memory or on a socket.
	Serve func(listener.Service)
	// InternalTopics are settings for the internal topics of a new cluster, on top of
	// their own.
	InternalTopics map[string]string
}

type key struct{}

// With returns a context that carries the options.
func With(ctx context.Context, o Options) context.Context {
	return context.WithValue(ctx, key{}, o)
}

// From returns the options of a context, zero if it has none.
func From(ctx context.Context) Options {
	o, _ := ctx.Value(key{}).(Options)
	return o
}
