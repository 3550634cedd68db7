package connectors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Decoder turns the bytes of a key or a value into a Go value. It is called for
// bytes only: null becomes nil without a decoder. It must not keep b, and it must
// be safe for concurrent use.
type Decoder interface {
	Decode(b []byte) (any, error)
}

// DecoderFunc is a function as a Decoder.
type DecoderFunc func(b []byte) (any, error)

// Decode calls f.
func (f DecoderFunc) Decode(b []byte) (any, error) { return f(b) }

// Bytes passes the bytes on as []byte, copied.
var Bytes Decoder = DecoderFunc(func(b []byte) (any, error) { return bytes.Clone(b), nil })

// String takes the bytes as UTF-8 text and refuses others.
var String Decoder = DecoderFunc(func(b []byte) (any, error) {
	if !utf8.Valid(b) {
		return nil, fmt.Errorf("string: %d bytes that are not UTF-8", len(b))
	}
	return string(b), nil
})

// Int64 reads eight bytes, big endian, as Kafka's LongSerializer writes them.
var Int64 Decoder = DecoderFunc(func(b []byte) (any, error) {
	u, err := fixed8("int64", b)
	return int64(u), err
})

// Float64 reads eight bytes, big endian, as Kafka's DoubleSerializer writes them.
var Float64 Decoder = DecoderFunc(func(b []byte) (any, error) {
	u, err := fixed8("float64", b)
	return math.Float64frombits(u), err
})

func fixed8(what string, b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("%s: %d bytes, want 8", what, len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}

// JSON reads exactly one JSON value: map[string]any, []any, string, bool, nil, or
// [json.Number], which keeps integers exact.
var JSON Decoder = DecoderFunc(func(b []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("json: more bytes after the value (at byte %d of %d)", d.InputOffset(), len(b))
	}
	return v, nil
})

// WindowedKey is the decoded key of a windowed stream result.
type WindowedKey struct {
	Key   any
	Start time.Time // start of the window, UTC
}

// Windowed reads the key of a windowed stream: the key's bytes followed by the
// start of the window in milliseconds, eight bytes, big endian.
func Windowed(key Decoder) Decoder {
	return DecoderFunc(func(b []byte) (any, error) {
		if len(b) < 8 {
			return nil, fmt.Errorf("windowed key: %d bytes, want at least 8 for the window start", len(b))
		}
		cut := len(b) - 8
		k, err := key.Decode(b[:cut])
		if err != nil {
			return nil, fmt.Errorf("windowed key: %w", err)
		}
		ms := int64(binary.BigEndian.Uint64(b[cut:]))
		return WindowedKey{Key: k, Start: time.UnixMilli(ms).UTC()}, nil
	})
}

// DecoderByName returns the decoder of that name: bytes, string, json, int64,
// float64, or windowed(name).
func DecoderByName(name string) (Decoder, error) {
	if inner, ok := strings.CutPrefix(name, "windowed("); ok && strings.HasSuffix(inner, ")") {
		d, err := DecoderByName(strings.TrimSuffix(inner, ")"))
		if err != nil {
			return nil, err
		}
		return Windowed(d), nil
	}
	switch name {
	case "bytes":
		return Bytes, nil
	case "string":
		return String, nil
	case "json":
		return JSON, nil
	case "int64":
		return Int64, nil
	case "float64":
		return Float64, nil
	}
	return nil, fmt.Errorf("%w: no decoder %q; there are bytes, string, json, int64, float64 and windowed(...)", ErrConfig, name)
}
