package operator

import (
	"fmt"

	"github.com/millrace/millrace/streams/state"
)

// rawStore is a store of bytes with its name for messages.
type rawStore struct {
	state.Store
	name string
}

func openRaw(b *Builder, name string) (rawStore, error) {
	s, err := b.Store(name)
	if err != nil {
		err = fmt.Errorf("store %s: %w", name, err)
	}
	return rawStore{s, name}, err
}

// short reports a row that cannot be what this release writes.
func (s rawStore) short(row []byte, least int) error {
	return fmt.Errorf("store %s: a row has %d bytes, its fixed parts alone take %d", s.name, len(row), least)
}

func (s rawStore) wrap(err error) error { return fmt.Errorf("store %s: %w", s.name, err) }

// successor writes the first key after all that begin with prefix, which must
// not be all 0xff.
func successor(dst, prefix []byte) []byte {
	dst = append(dst[:0], prefix...)
	for i := len(dst) - 1; i >= 0; i-- {
		if dst[i]++; dst[i] != 0 {
			return dst[:i+1]
		}
	}
	return nil
}
