package pebble

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// engine is a [state.Engine].
type engine struct {
	options Options
	fs      vfs.FS
}

// databaseFormat is the format of Pebble's own files. It is fixed here, not taken
// from the library, so that a new release of the library does not make stores that
// the release of Millrace before cannot open.
const databaseFormat = pebble.FormatValueSeparation

// settings are Pebble's own options for one store.
func (e engine) settings(c *caches, g *gate, l *listener) *pebble.Options {
	o := &pebble.Options{
		FS: g, Cache: c.blocks, FileCache: c.files, MaxOpenFiles: e.options.OpenFiles,
		Logger: l, EventListener: &pebble.EventListener{BackgroundError: l.background, DataCorruption: l.corruption},
		FormatMajorVersion: databaseFormat,
		MemTableSize:       uint64(e.options.MemTableBytes),
		// Writes wait for the disk when two tables in memory are full, or when
		// compactions are far behind: memory is bounded by that.
		MemTableStopWritesThreshold: 2,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       24,
		LBaseMaxBytes:               64 << 20,
		// The changelog is what a store is rebuilt from, so nothing of an older
		// manifest is of use.
		NumPrevManifest: 1,
	}
	o.Levels[0].BlockSize = 8 << 10
	o.Levels[0].IndexBlockSize = 64 << 10
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}
