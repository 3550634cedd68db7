package avro

import (
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
