package serde

import (
	"encoding/hex"
	"fmt"
)

// UUID is the serde of a 16-byte identifier as its canonical text of 36
// characters, which is what Kafka's own UUID serde writes.
func UUID[T ~[16]byte]() Serde[T] { return uuidSerde[T]{} }

type uuidSerde[T ~[16]byte] struct{}

func (uuidSerde[T]) Append(dst []byte, v T) ([]byte, error) { return appendUUID(dst, v), nil }

func (uuidSerde[T]) Decode(b []byte) (T, error) {
	u, err := parseUUID(b)
	return T(u), err
}

// dashes are the positions of the four dashes in the text.
var dashes = [4]int{8, 13, 18, 23}

func appendUUID(dst []byte, u [16]byte) []byte {
	at := len(dst)
	dst = append(dst, "00000000-0000-0000-0000-000000000000"...)
	text := dst[at:]
	hex.Encode(text[0:8], u[0:4])
	hex.Encode(text[9:13], u[4:6])
	hex.Encode(text[14:18], u[6:8])
	hex.Encode(text[19:23], u[8:10])
	hex.Encode(text[24:36], u[10:16])
	return dst
}

func parseUUID(b []byte) (u [16]byte, err error) {
	if err := wantLen("UUID", 36, b); err != nil {
		return u, err
	}
	for _, at := range dashes {
		if b[at] != '-' {
			return u, fmt.Errorf("serde: UUID %q has no dash at position %d", b, at)
		}
	}
	parts := [5][2]int{{0, 8}, {9, 13}, {14, 18}, {19, 23}, {24, 36}}
	n := 0
	for _, p := range parts {
		m, err := hex.Decode(u[n:], b[p[0]:p[1]])
		if err != nil {
			return u, fmt.Errorf("serde: UUID %q: %w", b, err)
		}
		n += m
	}
	return u, nil
}
