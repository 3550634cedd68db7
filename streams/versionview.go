package streams

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
)

// VersionsView looks at the versions of rows; see View.
type VersionsView[K, V any] struct {
	at  lookup
	key *operator.Codec[K]
	val *operator.Codec[V]
}

// Get is the newest value of a key, with when it began.
func (v VersionsView[K, V]) Get(ctx context.Context, k K) (value V, from time.Time, ok bool, err error) {
	return v.read(ctx, k, math.MaxInt64)
}

// GetAsOf is the value that a key had at a time, with when it began. Versions that the
// history no longer reaches may still be found, until they are swept.
func (v VersionsView[K, V]) GetAsOf(ctx context.Context, k K, at time.Time) (value V, from time.Time, ok bool, err error) {
	return v.read(ctx, k, at.UnixMilli())
}

// read finds the newest version that began at a time or before. Versions lie by length
// of the key, key, and time counted down.
func (v VersionsView[K, V]) read(ctx context.Context, k K, ms int64) (value V, from time.Time, ok bool, err error) {
	if v.at.err != nil {
		return value, from, false, v.at.err
	}
	home, err := v.key.Append([]byte{}, &k)
	if err != nil {
		return value, from, false, v.at.wrap(err)
	}
	prefix := append(binary.BigEndian.AppendUint32(nil, uint32(len(home))), home...)
	a := binary.BigEndian.AppendUint64(slices.Clone(prefix), uint64(math.MaxInt64-ms))
	b := binary.BigEndian.AppendUint64(prefix, math.MaxUint64)
	for f, err := range v.at.scan(ctx, home, a, b) {
		switch {
		case err != nil:
			return value, from, false, err
		case len(f.Value) == 0:
			return value, from, false, v.at.wrap(fmt.Errorf("a version is empty"))
		case f.Value[0] == 0:
			return value, from, false, nil
		}
		from = time.UnixMilli(math.MaxInt64 - int64(binary.BigEndian.Uint64(f.Key[len(f.Key)-8:]))).UTC()
		value, err = v.val.Serde.Decode(f.Value[1:])
		return value, from, err == nil, v.at.wrap(err)
	}
	return value, from, false, nil
}
