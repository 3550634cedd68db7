// Package seam lets tests replace what the broker stands on, without a word of
// it in the public configuration: the file system, the clock, the limits of
// connections. The replacement travels in the context given to broker.Start.
package seam

import (
	"context"

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
