package jsonschema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/serde/jsonschema"
)

const orderV1 = `{"title": "Order", "type": "object", "required": ["user"],
	"properties": {"user": {"type": "string", "minLength": 1}, "cents": {"type": "integer", "minimum": 0}}}`

const orderV2 = `{"title": "Order", "type": "object", "required": ["user"],
	"properties": {"user": {"type": "string", "minLength": 1}, "cents": {"type": "number"},
		"lines": {"type": "array", "items": {"type": "string"}}}}`

type order struct {
	User  string `json:"user"`
	Cents int64  `json:"cents"`
}

type order2 struct {
	User  string   `json:"user"`
	Cents float64  `json:"cents"`
	Lines []string `json:"lines,omitempty"`
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	s := jsonschema.New[order](orderV1)
	b, err := s.Append([]byte("x"), order{"ann", 950})
	if err != nil || string(b) != `x{"user":"ann","cents":950}` {
		t.Fatalf("%s, %v", b, err)
	}
	if v, err := s.Decode(b[1:]); err != nil || v != (order{"ann", 950}) {
		t.Errorf("%+v, %v", v, err)
	}
	if d, err := s.Schema(); err != nil || d.Name != "Order" || d.Kind != serde.JSONSchema || d.Text != orderV1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestInvalid: neither a bad value goes out nor one comes in, and the error says
// where and why.
func TestInvalid(t *testing.T) {
	t.Parallel()
	s := jsonschema.New[order](orderV1)
	b, err := s.Append([]byte("x"), order{"", -1})
	for _, want := range []string{"/user: minLength", "/cents: minimum"} {
		if !errors.Is(err, jsonschema.ErrInvalid) || !strings.Contains(err.Error(), want) || string(b) != "x" {
			t.Errorf("%s, %v, want %s", b, err, want)
		}
	}
	if _, err := s.Decode([]byte(`{"cents":1.5}`)); !errors.Is(err, jsonschema.ErrInvalid) || !strings.Contains(err.Error(), "missing propert") {
		t.Errorf("%v", err)
	}
	if _, err := s.Decode([]byte(`{"user":`)); err == nil || errors.Is(err, jsonschema.ErrInvalid) {
		t.Errorf("cut off: %v", err)
	}
	if v, err := jsonschema.New[order](orderV1, jsonschema.Unchecked()).Decode([]byte(`{"cents":1}`)); err != nil || v.Cents != 1 {
		t.Errorf("unchecked: %v, %v", v, err)
	}
}

// TestEvolution: the new type reads old records, and the old one new records that
// its schema allows.
func TestEvolution(t *testing.T) {
	t.Parallel()
	older, newer := jsonschema.New[order](orderV1), jsonschema.New[order2](orderV2)
	b, err := older.Append(nil, order{"ann", 950})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := newer.Decode(b); err != nil || v.Cents != 950 || v.Lines != nil {
		t.Errorf("%+v, %v", v, err)
	}
	if b, err = newer.Append(nil, order2{"ann", 9, []string{"tea"}}); err != nil {
		t.Fatal(err)
	}
	if v, err := older.Decode(b); err != nil || v != (order{"ann", 9}) {
		t.Errorf("%+v, %v", v, err)
	}
	if b, err = newer.Append(nil, order2{"ann", 9.5, nil}); err != nil {
		t.Fatal(err)
	}
	if v, err := older.Decode(b); !errors.Is(err, jsonschema.ErrInvalid) {
		t.Errorf("%+v, %v", v, err)
	}
	// By an older schema the new type writes only what that allows.
	write, err := newer.WriterBy(serde.Schema{Kind: serde.JSONSchema, Text: orderV1})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := write(nil, order2{User: "ann", Cents: -1}); !errors.Is(err, jsonschema.ErrInvalid) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	const line = `{"type": "string", "minLength": 3}`
	const cart = `{"type": "array", "items": {"$ref": "line.json"}}`
	s := jsonschema.New[[]string](cart, jsonschema.Uses("line.json", line))
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(nil, []string{"tea"}); err != nil {
		t.Error(err)
	}
	if _, err := s.Append(nil, []string{"tea", "x"}); !errors.Is(err, jsonschema.ErrInvalid) || !strings.Contains(err.Error(), "/1: ") {
		t.Errorf("%v", err)
	}
	// Neither files nor hosts are asked for what is not given.
	for _, ref := range []string{"line.json", "file:///etc/passwd", "http://example.com/line.json"} {
		err := jsonschema.New[[]string](strings.Replace(cart, "line.json", ref, 1)).Check()
		if err == nil || !strings.Contains(err.Error(), "give it with Uses") {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

func TestMistakesAreReported(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{`, `{"type": 3}`} {
		s := jsonschema.New[order](schema)
		_, errAppend := s.Append(nil, order{})
		_, errDecode := s.Decode([]byte(`{}`))
		for _, err := range []error{s.Check(), errAppend, errDecode} {
			if err == nil || !strings.HasPrefix(err.Error(), "jsonschema: ") {
				t.Errorf("%s: %v", schema, err)
			}
		}
	}
}

func ExampleNew() {
	type Order struct {
		User  string `json:"user"`
		Cents int64  `json:"cents"`
	}
	s := jsonschema.New[Order](`{"type": "object", "properties": {"cents": {"minimum": 0}}}`)
	_, err := s.Append(nil, Order{"ann", -1})
	fmt.Println(err)
	// Output: value does not follow its JSON schema: /cents: minimum: got -1, want 0
}
