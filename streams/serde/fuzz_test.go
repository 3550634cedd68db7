package serde_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/window"
)

// canonical checks that what decodes encodes to the same bytes again: equal
// values have one encoding, which is what makes bytes fit to be keys.
func canonical[T any](t *testing.T, name string, s serde.Serde[T], b []byte) {
	v, err := s.Decode(b)
	if err != nil {
		return
	}
	again, err := s.Append(nil, v)
	if err != nil || !bytes.Equal(again, b) {
		t.Errorf("%s: %x decodes as %v and encodes as %x, %v", name, b, v, again, err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "\x01", "\x02", "ab", "abcd", "abcdefgh", "abcdefgh\x3b\x9a\xca\x00", "abcdefgh\x00\x00\x00\x01", "123e4567-e89b-12d3-a456-426614174000"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		canonical(t, "string", serde.String, b)
		canonical(t, "bytes", serde.Bytes, b)
		canonical(t, "bool", serde.Bool, b)
		canonical(t, "int8", serde.Int8, b)
		canonical(t, "int16", serde.Int16, b)
		canonical(t, "int32", serde.Int32, b)
		canonical(t, "uint64", serde.Uint64, b)
		canonical(t, "int", serde.Int, b)
		canonical(t, "time", serde.Time, b)
		canonical(t, "windowed", window.Serde(serde.Bytes, time.Minute), b)
		// The letters of a UUID may come in upper case; they are written in
		// lower case.
		canonical(t, "UUID", serde.UUID[uuid](), bytes.ToLower(b))
	})
}
