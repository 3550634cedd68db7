package pebble

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/streams/state"
)

// NewOn is New on a file system of the test's.
func NewOn(fs vfs.FS, o Options) state.Engine { return engine{options: o.withDefaults(), fs: fs} }

// Shared is how many stores have a share in caches.
func Shared() (n int) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	for _, c := range shared.by {
		n += c.stores
	}
	return n
}

// SetFormat writes another version into a store.
func SetFormat(t *testing.T, dir string, version uint32) {
	t.Helper()
	img, err := New(Options{}).Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := img.(*image).db.NewBatch()
	if err := b.Set(formatKey, binary.BigEndian.AppendUint32(nil, version), nil); err != nil {
		t.Fatal(err)
	}
	if err := img.(*image).commit("test", b); err != nil {
		t.Fatal(err)
	}
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
}
