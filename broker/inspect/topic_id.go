package inspect

import (
	"encoding/base64"
	"fmt"
	"math/bits"
	"strings"
)

// parseMetadata reads partition.metadata: version 0 and the topic's id.
func parseMetadata(text []byte) (id [16]byte, err error) {
	version, rest, _ := strings.Cut(string(text), "\n")
	value, ok := strings.CutPrefix(strings.TrimSpace(rest), "topic_id: ")
	raw, err := base64.RawURLEncoding.DecodeString(value)
	if strings.TrimSpace(version) != "version: 0" || !ok || err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("%q", text)
	}
	return [16]byte(raw), nil
}

// metadataText is what the file says of a topic id.
func metadataText(id [16]byte) []byte { return []byte("version: 0\ntopic_id: " + uuidText(id)) }

// oneBit tells whether two texts differ in exactly one bit: with two random ids in them no two do.
func oneBit(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	n := 0
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n == 1
}
