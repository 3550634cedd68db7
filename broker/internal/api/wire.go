package api

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Both close the connection, as Kafka does.
var (
	errUnsupported = errors.New("unsupported API key or version")
	errMalformed   = errors.New("malformed request")
)

// maxTags bounds the tagged fields of a header, as Kafka 4.4 does.
const maxTags = 10_000

// skipTags passes over a tag section: clients may send tags that this broker
// does not know.
func skipTags(b []byte) ([]byte, error) {
	n, b, ok := uvarint(b)
	if !ok || n > maxTags {
		return nil, fmt.Errorf("%w: tag section of the header", errMalformed)
	}
	for range n {
		var size uint64
		if _, b, ok = uvarint(b); ok {
			size, b, ok = uvarint(b)
		}
		if !ok || size > uint64(len(b)) {
			return nil, fmt.Errorf("%w: tag in the header runs past the frame", errMalformed)
		}
		b = b[size:]
	}
	return b, nil
}

func uvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 || v > 1<<32-1 {
		return 0, nil, false
	}
	return v, b[n:], true
}

// decoder takes primitives off a request body, in the fixed or the flexible
// encoding (KIP-482). After the first error everything is zero. It copies
// nothing: byte slices alias the body.
type decoder struct {
	src      []byte
	flexible bool
	bad      bool
}

func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || n > len(d.src) {
		d.bad = true
		return nil
	}
	b := d.src[:n:n]
	d.src = d.src[n:]
	return b
}

func (d *decoder) i8() int8 {
	if b := d.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (d *decoder) i16() int16 {
	if b := d.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (d *decoder) i32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) i64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) id() (id [16]byte) {
	copy(id[:], d.take(16))
	return id
}

func (d *decoder) uvarint() uint64 {
	v, rest, ok := uvarint(d.src)
	if !ok || d.bad {
		d.bad = true
		return 0
	}
	d.src = rest
	return v
}

// size reads a length, -1 for null. fixed reads the length of the fixed encoding.
func (d *decoder) size(fixed func(*decoder) int) int {
	n := 0
	if d.flexible {
		n = int(d.uvarint()) - 1
	} else {
		n = fixed(d)
	}
	if d.bad || n < 0 {
		return -1
	}
	return n
}

func fixed16(d *decoder) int { return int(d.i16()) }
func fixed32(d *decoder) int { return int(d.i32()) }

// str reads a string; nil is null.
func (d *decoder) str() []byte {
	n := d.size(fixed16)
	if n < 0 {
		return nil
	}
	return d.take(n)
}

// bytes reads bytes; nil is null.
func (d *decoder) bytes() []byte {
	n := d.size(fixed32)
	if n < 0 {
		return nil
	}
	return d.take(n)
}

// maxElements bounds every array of a request, as Kafka 4.4 does.
const maxElements = 1_000_000

// array reads an array's length; null counts as empty. An element takes at least
// one byte, so a length beyond what is left can not be right.
func (d *decoder) array() int {
	n := d.size(fixed32)
	if n > len(d.src) || n > maxElements {
		d.bad = true
	}
	if d.bad {
		return 0
	}
	return max(n, 0)
}

// tags calls fn for every tagged field of a flexible message; fn may read field
// from its own decoder, what it leaves is skipped.
func (d *decoder) tags(fn func(tag uint64, field *decoder)) {
	if !d.flexible {
		return
	}
	n := d.uvarint()
	if n > maxTags {
		d.bad = true
	}
	for ; n > 0 && !d.bad; n-- {
		tag := d.uvarint()
		field := decoder{src: d.take(int(d.uvarint())), flexible: true}
		if fn != nil && !d.bad {
			fn(tag, &field)
			d.bad = d.bad || field.bad
		}
	}
}

func (d *decoder) err(what string, version int16) error {
	if d.bad {
		return fmt.Errorf("%w: %s version %d", errMalformed, what, version)
	}
	return nil
}

// encoder appends primitives of a response.
type encoder struct {
	dst      []byte
	flexible bool
}

func (e *encoder) i16(v int16) { e.dst = binary.BigEndian.AppendUint16(e.dst, uint16(v)) }
func (e *encoder) i32(v int32) { e.dst = binary.BigEndian.AppendUint32(e.dst, uint32(v)) }
func (e *encoder) i64(v int64) { e.dst = binary.BigEndian.AppendUint64(e.dst, uint64(v)) }

func (e *encoder) uvarint(v uint64) { e.dst = binary.AppendUvarint(e.dst, v) }

func (e *encoder) array(n int) {
	if e.flexible {
		e.dst = binary.AppendUvarint(e.dst, uint64(n)+1)
	} else {
		e.i32(int32(n))
	}
}

func (e *encoder) str(s string) {
	if e.flexible {
		e.dst = binary.AppendUvarint(e.dst, uint64(len(s))+1)
	} else {
		e.i16(int16(len(s)))
	}
	e.dst = append(e.dst, s...)
}

// nullable appends a string, null when it is empty.
func (e *encoder) nullable(s string) {
	switch {
	case s != "":
		e.str(s)
	case e.flexible:
		e.dst = append(e.dst, 0)
	default:
		e.i16(-1)
	}
}

// noTags ends a flexible message without tagged fields.
func (e *encoder) noTags() {
	if e.flexible {
		e.dst = append(e.dst, 0)
	}
}
