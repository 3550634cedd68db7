package inspect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// longPayload is the length from which keys and values are shown by length and hash, unless all of them are asked for.
const longPayload = 1024

// Payload is a key, a value or the value of a header as it is shown: null, text when it is UTF-8, else hexadecimal, and a long
// one by its length and its SHA-256.
type Payload struct {
	Bytes []byte // nil is null; a copy
	Short bool   // show a long one by length and hash
	Hex   bool   // never show it as text: it has a known binary form
}

// MarshalJSON writes null, {"text": …}, {"hex": …} or {"len": …, "sha256": …}.
func (p Payload) MarshalJSON() ([]byte, error) {
	switch {
	case p.Bytes == nil:
		return []byte("null"), nil
	case p.Short && len(p.Bytes) > longPayload:
		sum := sha256.Sum256(p.Bytes)
		return fmt.Appendf(nil, `{"len":%d,"sha256":"%x"}`, len(p.Bytes), sum), nil
	case !p.Hex && utf8.Valid(p.Bytes):
		text, err := json.Marshal(string(p.Bytes))
		return fmt.Appendf(nil, `{"text":%s}`, text), err
	}
	return fmt.Appendf(nil, `{"hex":"%x"}`, p.Bytes), nil
}

// String is the form in a line of text.
func (p Payload) String() string {
	switch {
	case p.Bytes == nil:
		return "null"
	case p.Short && len(p.Bytes) > longPayload:
		sum := sha256.Sum256(p.Bytes)
		return fmt.Sprintf("(%d bytes, sha256 %x)", len(p.Bytes), sum[:8])
	case !p.Hex && utf8.Valid(p.Bytes):
		return strconv.Quote(string(p.Bytes))
	}
	return "0x" + hex.EncodeToString(p.Bytes)
}

// ShownHeader is a header of a record as it is shown.
type ShownHeader struct {
	Key   string  `json:"key"`
	Value Payload `json:"value"`
}
