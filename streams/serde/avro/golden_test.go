package avro_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/serde/avro"
)

// golden is what Apache Avro 1.12.2 for Java wrote, and read by other schemas.
type golden struct {
	Name    string `json:"name"`
	Writer  string `json:"writer"`
	Value   any    `json:"value"`
	Bytes   string `json:"bytes"`
	Single  string `json:"single"`
	Readers []struct {
		Schema string `json:"schema"`
		Value  string `json:"value"`
		Error  string `json:"error"`
	} `json:"readers"`
}

func goldens(t *testing.T) []golden {
	t.Helper()
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	if err := json.Unmarshal(b, &all); err != nil || len(all) < 10 {
		t.Fatal(len(all), err)
	}
	return all
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBytesOfJava: what Java wrote decodes, and encodes to the same bytes again,
// with and without a fingerprint.
func TestBytesOfJava(t *testing.T) {
	t.Parallel()
	for _, g := range goldens(t) {
		t.Run(g.Name, func(t *testing.T) {
			for want, s := range map[string]serde.Serde[any]{
				g.Bytes: avro.New[any](g.Writer), g.Single: avro.New[any](g.Writer, avro.Fingerprint()),
			} {
				v, err := s.Decode(unhex(t, want))
				if err != nil {
					t.Fatal(err)
				}
				b, err := s.Append([]byte("x"), v)
				if err != nil || hex.EncodeToString(b[1:]) != want || b[0] != 'x' {
					t.Errorf("%v encodes as %x, %v, want %s", v, b[1:], err, want)
				}
			}
		})
	}
}

// stricter are the readers that Java lets have some records and not others; here
// the whole schema is refused, as a registry refuses it.
var stricter = map[string]int{"optional": 1, "renamed": 1}

// TestResolutionOfJava: records of one schema read by another give what Java makes
// of them.
func TestResolutionOfJava(t *testing.T) {
	t.Parallel()
	for _, g := range goldens(t) {
		for i, r := range g.Readers {
			s := avro.New[any](r.Schema)
			read, err := s.ReaderOf(serde.Schema{Kind: serde.Avro, Text: g.Writer})
			var got any
			if err == nil {
				got, err = read(unhex(t, g.Bytes))
			}
			switch at, ok := stricter[g.Name]; {
			case ok && at == i, r.Error != "":
				if err == nil {
					t.Errorf("%s by reader %d: %v, want an error like %q", g.Name, i, got, r.Error)
				}
			case err != nil:
				t.Errorf("%s by reader %d: %v, want %s", g.Name, i, err, r.Value)
			default:
				if !reflect.DeepEqual(plain(t, got), unwrapped(unJSON(t, r.Value))) {
					t.Errorf("%s by reader %d: %v, want %s", g.Name, i, got, r.Value)
				}
			}
		}
	}
}

// plain is a decoded value as JSON sees it; Avro's JSON has bytes as text of Latin-1.
func plain(t *testing.T, v any) any {
	t.Helper()
	latin1 := func(b []byte) ([]byte, error) {
		var text strings.Builder
		for _, c := range b {
			text.WriteRune(rune(c))
		}
		return json.Marshal(text.String())
	}
	b, err := json.Marshal(v, json.WithMarshalers(json.JoinMarshalers(
		json.MarshalFunc(latin1), json.MarshalFunc(func(b [4]byte) ([]byte, error) { return latin1(b[:]) }))))
	if err != nil {
		t.Fatal(err)
	}
	return unJSON(t, string(b))
}

// unwrapped is a value of Avro's JSON without the names of the types that it puts
// around values of unions.
func unwrapped(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for k, x := range m {
		if len(m) == 1 && (k == "long" || k == "double") {
			return x
		}
		m[k] = unwrapped(x)
	}
	return m
}

func unJSON(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// TestCutRecordsAreErrors: no beginning of a record is taken for one.
func TestCutRecordsAreErrors(t *testing.T) {
	t.Parallel()
	for _, g := range goldens(t) {
		s := avro.New[any](g.Writer)
		whole := unhex(t, g.Bytes)
		for n := range len(whole) {
			if v, err := s.Decode(whole[:n]); err == nil {
				t.Errorf("%s: the first %d of %d bytes decode as %v", g.Name, n, len(whole), v)
			}
		}
		if v, err := s.Decode(append(bytes.Clone(whole), 0)); err == nil {
			t.Errorf("%s: with a byte more it decodes as %v", g.Name, v)
		}
	}
}
