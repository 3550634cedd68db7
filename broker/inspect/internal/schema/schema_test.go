package schema

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// Every layout of the table reads any bytes without a panic, and says so when it can not.
func TestAnyBytes(t *testing.T) {
	const seed = 20261129
	rng := rand.New(rand.NewPCG(seed, 1))
	read := 0
	for _, name := range slices.Sorted(maps.Keys(load().byName)) {
		s := Named(name)
		for version := range s.versions {
			for range 200 {
				p := make([]byte, rng.IntN(120))
				for i := range p {
					if p[i] = byte(rng.Uint32()); rng.IntN(2) == 0 {
						p[i] &= 3 // small lengths, so that some of it fits
					}
				}
				v, rest, err := s.Decode(version, p)
				if err != nil {
					if !errors.Is(err, ErrMalformed) {
						t.Fatalf("seed %d: %s %d: %v", seed, name, version, err)
					}
					continue
				}
				if len(rest) > len(p) {
					t.Fatalf("seed %d: %s %d: %d bytes are left of %d", seed, name, version, len(rest), len(p))
				}
				if _, err := json.Marshal(v); err != nil {
					t.Fatalf("seed %d: %s %d: %v", seed, name, version, err)
				}
				read++
			}
		}
	}
	if read < 1000 {
		t.Errorf("only %d of the random messages could be read: the test proves little", read)
	}
}

// An array that claims a billion elements costs no memory.
func TestClaimedLength(t *testing.T) {
	p := mustHex(t, "0000"+"00000000"+"ffff"+"ffff"+"0000000000000000"+"40000000")
	if _, _, err := Named("GroupMetadataValue").Decode(3, p); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %v", err)
	}
}

func TestUnknown(t *testing.T) {
	if KeyOf(Groups, 99) != nil || ValueOf(Groups, 99) != nil || RecordOf(Metadata, 99) != nil || Named("Nothing") != nil {
		t.Error("there is a layout for nothing")
	}
	if _, _, err := Named("OffsetCommitValue").Decode(99, nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("version 99: %v", err)
	}
	// A tag that the table does not have is kept.
	v, _, err := Named("TransactionLogValue").Decode(1, mustHex(t, "0000000000000001"+"0000"+"000003e8"+"00"+"00"+"0000000000000000"+"0000000000000000"+"01"+"e807"+"02"+"000a"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(mustJSON(t, v.Get(unknownTags))), `{"1000":{"hex":"000a"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func mustHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
