package avro

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/hamba/avro/v2"

	"github.com/millrace/millrace/streams/serde"
)

// Serde is the Avro serde of T; it implements serde.Described. A mistake in the
// schema is reported when the topology is built, and by each call.
type Serde[T any] struct {
	schema avro.Schema
	text   string
	uses   []serde.Reference
	err    error
	append func([]byte, T) ([]byte, error)
	read   func([]byte) (T, error)
	single *single[T] // with Fingerprint
}

// Opt is an option of New.
type Opt func(*options)

type options struct {
	fingerprint bool
	since       []string
	uses        []serde.Reference
}

// Uses names a schema that the schema refers to, by its full name. Several are
// given in an order in which each knows the ones that it needs.
func Uses(name, schema string) Opt {
	return func(o *options) {
		o.uses = append(o.uses, serde.Reference{Name: name, Schema: serde.Schema{Kind: serde.Avro, Name: name, Text: schema}})
	}
}

// New is the serde of T by a schema. It writes and reads the bare encoding, unless
// Fingerprint is given.
func New[T any](schema string, opts ...Opt) *Serde[T] {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	s := &Serde[T]{text: schema, uses: o.uses}
	if s.schema, s.err = parse(schema, o.uses); s.err != nil {
		return s
	}
	s.append = appender[T](s.schema)
	if s.read, s.err = reader[T](s.schema, s.schema); s.err != nil {
		return s
	}
	if o.fingerprint || len(o.since) > 0 {
		s.single, s.err = newSingle[T](s.schema, o)
	}
	return s
}

// parse reads a schema on its own: the library's default cache would let schemas
// of the same name in one process see each other.
func parse(text string, uses []serde.Reference) (avro.Schema, error) {
	cache := new(avro.SchemaCache)
	for _, use := range uses {
		if err := parseUse(use, cache); err != nil {
			return nil, err
		}
	}
	schema, err := avro.ParseWithCache(text, "", cache)
	if err != nil {
		return nil, fmt.Errorf("avro: schema: %w", err)
	}
	return schema, nil
}

func parseUse(use serde.Reference, cache *avro.SchemaCache) error {
	for _, below := range use.Schema.Uses {
		if err := parseUse(below, cache); err != nil {
			return err
		}
	}
	if _, err := avro.ParseWithCache(use.Schema.Text, "", cache); err != nil {
		return fmt.Errorf("avro: schema %s, which is referred to: %w", use.Name, err)
	}
	return nil
}

// Check implements serde.Checked.
func (s *Serde[T]) Check() error { return s.err }

// Append implements serde.Serde.
func (s *Serde[T]) Append(dst []byte, v T) ([]byte, error) {
	if s.err != nil {
		return dst, s.err
	}
	if s.single != nil {
		return s.append(append(dst, s.single.header...), v)
	}
	return s.append(dst, v)
}

// Decode implements serde.Serde.
func (s *Serde[T]) Decode(b []byte) (T, error) {
	if s.err != nil {
		var none T
		return none, s.err
	}
	if s.single != nil {
		return s.single.decode(b)
	}
	return s.read(b)
}

// Schema implements serde.Described.
func (s *Serde[T]) Schema() (serde.Schema, error) {
	d := serde.Schema{Kind: serde.Avro, Text: s.text, Uses: s.uses}
	if named, ok := s.schema.(avro.NamedSchema); ok {
		d.Name = named.FullName()
	}
	return d, s.err
}

// WriterBy implements serde.Described.
func (s *Serde[T]) WriterBy(by serde.Schema) (func(dst []byte, v T) ([]byte, error), error) {
	if s.err != nil {
		return nil, s.err
	}
	if by.Text == s.text {
		return s.append, nil
	}
	other, err := parse(by.Text, by.Uses)
	if err != nil {
		return nil, err
	}
	return appender[T](other), nil
}

// ReaderOf implements serde.Described.
func (s *Serde[T]) ReaderOf(written serde.Schema) (func(b []byte) (T, error), error) {
	if s.err != nil {
		return nil, s.err
	}
	other, err := parse(written.Text, written.Uses)
	if err != nil {
		return nil, err
	}
	return reader[T](s.schema, other)
}

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
