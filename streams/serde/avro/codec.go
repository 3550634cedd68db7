package avro

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/hamba/avro/v2"
)

// maxPiece bounds what a length inside of a record may make the decoder allocate.
const maxPiece = 64 << 20

// newAPI makes the library's caches of one schema. They are by fingerprint, which
// leaves logical types and defaults out; schemas that differ in these only would
// share a decoder.
func newAPI() avro.API {
	return avro.Config{
		// Arrays and maps in one block without its size, as the library for Java writes them.
		BlockLength: math.MaxInt32, DisableBlockSizeHeader: true,
		MaxByteSliceSize: maxPiece, MaxSliceAllocSize: maxPiece, UnionResolutionError: true,
	}.Freeze()
}

func appender[T any](schema avro.Schema) func([]byte, T) ([]byte, error) {
	api := newAPI()
	pool := sync.Pool{New: func() any { return avro.NewWriter(io.Discard, 256, avro.WithWriterConfig(api)) }}
	return func(dst []byte, v T) ([]byte, error) {
		w := pool.Get().(*avro.Writer)
		defer pool.Put(w)
		w.Reset(nil)
		w.Error = nil
		w.WriteVal(schema, v)
		if w.Error != nil {
			return dst, fmt.Errorf("avro: %w", w.Error)
		}
		return append(dst, w.Buffer()...), nil
	}
}

// reader decodes what was written by one schema into T, whose own is another
// version of it, or the same.
func reader[T any](own, written avro.Schema) (func([]byte) (T, error), error) {
	schema := own
	if own.String() != written.String() {
		var err error
		if schema, err = avro.NewSchemaCompatibility().Resolve(own, written); err != nil {
			return nil, fmt.Errorf("avro: %w", err)
		}
	}
	api := newAPI()
	pool := sync.Pool{New: func() any { return avro.NewReader(nil, 0, avro.WithReaderConfig(api)) }}
	return func(b []byte) (v T, err error) {
		r := pool.Get().(*avro.Reader)
		defer func() {
			r.Reset(nil) // b is not ours to keep
			pool.Put(r)
		}()
		r.Error = nil
		r.Reset(b)
		// Not API.Unmarshal: it takes a record that ends too early for a good one.
		r.ReadVal(schema, &v)
		if r.Error != nil {
			var none T
			return none, fmt.Errorf("avro: %w", r.Error)
		}
		if r.Peek(); r.Error == nil {
			var none T
			return none, errors.New("avro: the record is longer than its schema says")
		}
		return v, nil
	}, nil
}
