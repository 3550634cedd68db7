package pebble

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/streams/state"
)

// New makes the engine. Options out of their limits are reported when a store is
// opened.
func New(o Options) state.Engine { return engine{options: o.withDefaults(), fs: vfs.Default} }

// Name implements state.Engine.
func (engine) Name() string { return "pebble" }

// Durable implements state.Engine.
func (engine) Durable() bool { return true }

// Open implements state.Engine.
func (e engine) Open(dir string) (state.Image, error) {
	if err := e.options.Validate(); err != nil {
		return nil, err
	}
	s := &image{engine: e, dir: dir}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}
