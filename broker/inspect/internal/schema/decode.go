package schema

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// ErrMalformed is wrapped by every error about bytes that are not what the table says.
var ErrMalformed = errors.New("schema: malformed record")

// Field is a decoded field: Value is nil, bool, int64, float64, string, [Bytes], [Struct] or []any of these.
type Field struct {
	Name  string
	Value any
}

// Struct is a decoded struct, its fields in the order of the table; tagged ones only where the record has them.
type Struct []Field

// Bytes is an opaque field.
type Bytes []byte

// MarshalJSON writes bytes as {"hex": …}, so that they are not taken for text.
func (b Bytes) MarshalJSON() ([]byte, error) {
	return []byte(`{"hex":"` + hex.EncodeToString(b) + `"}`), nil
}

// MarshalJSON writes an object whose fields keep their order.
func (s Struct) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, f := range s {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%q:", f.Name)
		v, err := json.Marshal(f.Value)
		if err != nil {
			return nil, err
		}
		out.Write(v)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// Get gives a field's value, nil when there is none.
func (s Struct) Get(name string) any {
	for _, f := range s {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// Set gives a field that is there another value.
func (s Struct) Set(name string, value any) {
	for i := range s {
		if s[i].Name == name {
			s[i].Value = value
		}
	}
}

// Int gives a field that is a number, 0 when there is none.
func (s Struct) Int(name string) int64 { v, _ := s.Get(name).(int64); return v }

// Text gives a field that is a string, "" when it is null or not there.
func (s Struct) Text(name string) string { v, _ := s.Get(name).(string); return v }

// Decode reads one message of a version and gives what follows it.
func (s *Schema) Decode(version int16, p []byte) (v Struct, rest []byte, err error) {
	fields := s.versions[version]
	if fields == nil {
		return nil, p, fmt.Errorf("%w: %s has no version %d", ErrMalformed, s.Name, version)
	}
	r := &reader{p: p}
	v = r.fields(fields, 0)
	if r.err != nil {
		return nil, p, fmt.Errorf("%w: %s version %d: %w", ErrMalformed, s.Name, version, r.err)
	}
	return v, r.p, nil
}

// reader takes from the front of p; after the first error it gives zeros.
type reader struct {
	p   []byte
	err error
}

var errShort = errors.New("it ends early")

// maxDepth is more than any layout nests.
const maxDepth = 16

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.p = nil
}

func (r *reader) fields(fs []field, depth int) Struct {
	out := make(Struct, 0, len(fs))
	for _, f := range fs {
		if f.name == tagged {
			out = r.tags(out, f.tags, depth)
			continue
		}
		out = append(out, Field{f.name, r.value(f.kind, depth)})
		if r.err != nil {
			r.err = fmt.Errorf("field %s: %w", f.name, r.err)
			return nil
		}
	}
	return out
}

func (r *reader) value(k *kind, depth int) any {
	switch {
	case depth > maxDepth:
		r.fail(errors.New("it nests too deep"))
		return nil
	case k.array != nil:
		return r.array(k, depth)
	case k.fields != nil:
		if k.nullable {
			// A plain struct that may be null begins with -1 or 1, one in a tagged field with 0 or 1.
			if n := int8(r.byte()); n <= 0 {
				return nil
			}
		}
		return r.fields(k.fields, depth+1)
	}
	return primitives[k.primitive](r)
}

func (r *reader) array(k *kind, depth int) any {
	var n int64
	if k.compact {
		n = int64(r.uvarint()) - 1
	} else {
		n = int64(int32(r.fixed(4)))
	}
	switch {
	case r.err != nil:
		return nil
	case n == -1 && k.isNull:
		return nil
	case n < 0 || n > int64(len(r.p)): // every element takes a byte at least
		r.fail(fmt.Errorf("an array of %d elements in %d bytes", n, len(r.p)))
		return nil
	}
	out := []any{}
	for range n {
		out = append(out, r.value(k.array, depth+1))
		if r.err != nil {
			return nil
		}
	}
	return out
}

// unknownTags collects the tagged fields that the table does not have: other programs may add some.
const unknownTags = "_unknown_tags"

func (r *reader) tags(out Struct, known map[uint64]field, depth int) Struct {
	var unknown Struct
	for range r.uvarint() {
		tag, size := r.uvarint(), r.uvarint()
		b := r.take(size)
		if r.err != nil {
			return out
		}
		f, ok := known[tag]
		if !ok {
			unknown = append(unknown, Field{strconv.FormatUint(tag, 10), Bytes(bytes.Clone(b))})
			continue
		}
		in := &reader{p: b}
		out = append(out, Field{f.name, in.value(f.kind, depth+1)})
		if in.err == nil && len(in.p) > 0 {
			in.err = fmt.Errorf("%d bytes are left", len(in.p))
		}
		if in.err != nil {
			r.fail(fmt.Errorf("tag %d: %w", tag, in.err))
		}
	}
	if unknown != nil {
		out = append(out, Field{unknownTags, unknown})
	}
	return out
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.p)) {
		r.fail(errShort)
		return nil
	}
	b := r.p[:n:n]
	r.p = r.p[n:]
	return b
}

func (r *reader) byte() byte { return byte(r.fixed(1)) }

func (r *reader) fixed(size int) uint64 {
	var n uint64
	for _, b := range r.take(uint64(size)) {
		n = n<<8 | uint64(b)
	}
	return n
}

func (r *reader) uvarint() uint64 {
	n, size := binary.Uvarint(r.p)
	if size <= 0 || n > math.MaxUint32 {
		r.fail(errShort)
		return 0
	}
	r.p = r.p[size:]
	return n
}

// blob reads a length and that many bytes; ok is false for null.
func (r *reader) blob(compact, nullable bool, size int) (b []byte, ok bool) {
	var n int64
	switch {
	case compact:
		n = int64(r.uvarint()) - 1
	case size == 2:
		n = int64(int16(r.fixed(2)))
	default:
		n = int64(int32(r.fixed(4)))
	}
	if n == -1 && nullable && r.err == nil {
		return nil, false
	}
	if n < 0 {
		r.fail(fmt.Errorf("length %d", n))
		return nil, false
	}
	return r.take(uint64(n)), true
}

func (r *reader) str(compact, nullable bool) any {
	b, ok := r.blob(compact, nullable, 2)
	if !ok {
		return nil
	}
	if !utf8.Valid(b) {
		r.fail(fmt.Errorf("text %q is no UTF-8", b))
	}
	return string(b)
}

func (r *reader) bytes(compact, nullable bool) any {
	b, ok := r.blob(compact, nullable, 4)
	if !ok {
		return nil
	}
	return Bytes(bytes.Clone(b))
}

var primitives map[string]func(*reader) any

func init() {
	primitives = map[string]func(*reader) any{
		"BOOLEAN":                 func(r *reader) any { return r.byte() != 0 },
		"INT8":                    func(r *reader) any { return int64(int8(r.fixed(1))) },
		"INT16":                   func(r *reader) any { return int64(int16(r.fixed(2))) },
		"UINT16":                  func(r *reader) any { return int64(r.fixed(2)) },
		"INT32":                   func(r *reader) any { return int64(int32(r.fixed(4))) },
		"UINT32":                  func(r *reader) any { return int64(r.fixed(4)) },
		"INT64":                   func(r *reader) any { return int64(r.fixed(8)) },
		"FLOAT64":                 func(r *reader) any { return number(math.Float64frombits(r.fixed(8))) },
		"UUID":                    func(r *reader) any { return base64.RawURLEncoding.EncodeToString(r.take(16)) },
		"STRING":                  func(r *reader) any { return r.str(false, false) },
		"NULLABLE_STRING":         func(r *reader) any { return r.str(false, true) },
		"COMPACT_STRING":          func(r *reader) any { return r.str(true, false) },
		"COMPACT_NULLABLE_STRING": func(r *reader) any { return r.str(true, true) },
		"BYTES":                   func(r *reader) any { return r.bytes(false, false) },
		"NULLABLE_BYTES":          func(r *reader) any { return r.bytes(false, true) },
		"COMPACT_BYTES":           func(r *reader) any { return r.bytes(true, false) },
		"COMPACT_NULLABLE_BYTES":  func(r *reader) any { return r.bytes(true, true) },
	}
}

// number is a float, or the text of one that JSON has no number for.
func number(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return f
}
