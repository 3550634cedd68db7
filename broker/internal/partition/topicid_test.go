package partition

import (
	"encoding/base64"
	"testing"
)

func topicIDOf(t *testing.T, s string) [16]byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 16 {
		t.Fatalf("%q: %v", s, err)
	}
	return [16]byte(b)
}
