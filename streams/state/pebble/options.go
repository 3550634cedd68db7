package pebble

import "fmt"

// Options tune the engine. The zero value works. Engines with equal options share
// their caches.
type Options struct {
	// CacheBytes is how much of the tables all stores of the process together keep
	// in memory, uncompressed. Default 128 MiB.
	CacheBytes int

	// MemTableBytes is how large one table of one store may grow in memory before
	// it goes to disk; there are two at most. It begins at 256 KiB and doubles with
	// use, so that small stores stay small. Default 16 MiB.
	MemTableBytes int

	// OpenFiles is how many files of tables all stores together keep open. Default
	// 1000.
	OpenFiles int
}

func (o Options) withDefaults() Options {
	if o.CacheBytes == 0 {
		o.CacheBytes = 128 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 16 << 20
	}
	if o.OpenFiles == 0 {
		o.OpenFiles = 1000
	}
	return o
}

// Validate names the field that is out of its limits.
func (o Options) Validate() error {
	o = o.withDefaults()
	switch {
	case o.CacheBytes < 1<<20:
		return fmt.Errorf("pebble: Options.CacheBytes is %d, must be at least 1 MiB", o.CacheBytes)
	case o.MemTableBytes < 256<<10 || o.MemTableBytes > 1<<30:
		return fmt.Errorf("pebble: Options.MemTableBytes is %d, must be between 256 KiB and 1 GiB", o.MemTableBytes)
	case o.OpenFiles < 16:
		return fmt.Errorf("pebble: Options.OpenFiles is %d, must be at least 16", o.OpenFiles)
	}
	return nil
}
