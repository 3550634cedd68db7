package avro

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/hamba/avro/v2"
	"github.com/hamba/avro/v2/soe"
)

// ErrUnknownSchema reports a record with a fingerprint of none of the schemas that
// the serde knows.
var ErrUnknownSchema = errors.New("avro: fingerprint of an unknown schema")

// Fingerprint puts Avro's single-object header before each record: the bytes c3 01
// and the CRC-64-AVRO of the schema.
func Fingerprint() Opt { return func(o *options) { o.fingerprint = true } }

// Since names schemas that records were written by before, and implies Fingerprint.
func Since(older ...string) Opt { return func(o *options) { o.since = append(o.since, older...) } }

// single reads and writes with fingerprints.
type single[T any] struct {
	header  []byte
	readers []singleReader[T] // the own schema first; there are few
}

type singleReader[T any] struct {
	header []byte
	read   func([]byte) (T, error)
}

func newSingle[T any](own avro.Schema, o options) (*single[T], error) {
	s := new(single[T])
	add := func(written avro.Schema) error {
		header, err := soe.BuildHeader(written)
		if err != nil {
			return fmt.Errorf("avro: fingerprint: %w", err)
		}
		read, err := reader[T](own, written)
		s.readers = append(s.readers, singleReader[T]{header, read})
		return err
	}
	if err := add(own); err != nil {
		return nil, err
	}
	s.header = s.readers[0].header
	for i, text := range o.since {
		older, err := parse(text, o.uses)
		if err == nil {
			err = add(older)
		}
		if err != nil {
			return nil, fmt.Errorf("older schema %d: %w", i+1, err)
		}
	}
	return s, nil
}

func (s *single[T]) decode(b []byte) (T, error) {
	for _, r := range s.readers {
		if bytes.HasPrefix(b, r.header) {
			return r.read(b[len(r.header):])
		}
	}
	var none T
	fingerprint, _, err := soe.ParseHeader(b)
	if err != nil {
		return none, fmt.Errorf("avro: %w", err)
	}
	return none, fmt.Errorf("%w: %x", ErrUnknownSchema, fingerprint)
}
