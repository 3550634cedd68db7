package avro_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/serde/avro"
)

const (
	orderV1 = `{"type": "record", "name": "Order", "namespace": "shop", "fields": [
		{"name": "user", "type": "string"},
		{"name": "cents", "type": "int"}]}`
	orderV2 = `{"type": "record", "name": "Order", "namespace": "shop", "fields": [
		{"name": "user", "type": "string"},
		{"name": "cents", "type": "long"},
		{"name": "coupon", "type": ["null", "string"], "default": null},
		{"name": "lines", "type": {"type": "array", "items": "string"}, "default": []}]}`
)

type order1 struct {
	User  string `avro:"user"`
	Cents int32  `avro:"cents"`
}

type order2 struct {
	User   string   `avro:"user"`
	Cents  int64    `avro:"cents"`
	Coupon *string  `avro:"coupon"`
	Lines  []string `avro:"lines"`
}

// TestEvolution: an old record read by the new type, and what the new type writes
// by the old schema read by the old type.
func TestEvolution(t *testing.T) {
	t.Parallel()
	older, newer := avro.New[order1](orderV1, avro.Fingerprint()), avro.New[order2](orderV2, avro.Since(orderV1))
	b, err := older.Append(nil, order1{"ann", 950})
	if err != nil {
		t.Fatal(err)
	}
	v, err := newer.Decode(b)
	if want := (order2{User: "ann", Cents: 950, Lines: []string{}}); err != nil || !reflect.DeepEqual(v, want) {
		t.Errorf("the new type reads %+v, %v, want %+v", v, err, want)
	}
	b, err = newer.Append(nil, order2{User: "bob", Cents: 7})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := older.Decode(b); !errors.Is(err, avro.ErrUnknownSchema) {
		t.Errorf("the old type reads a new record: %v", err)
	}

	// The old reader knows the new schema when a registry tells it; long does not fit into int.
	_, err = older.ReaderOf(serde.Schema{Kind: serde.Avro, Text: orderV2})
	if err == nil || !strings.Contains(err.Error(), "int not compatible with writer schema long") {
		t.Errorf("a narrower reader: %v", err)
	}
	read, err := avro.New[order2](orderV2).ReaderOf(serde.Schema{Kind: serde.Avro, Text: strings.Replace(orderV2, "coupon", "voucher", 1)})
	if err != nil {
		t.Fatal(err)
	}
	voucher := "v"
	b, _ = avro.New[struct {
		order2
		Voucher *string `avro:"voucher"`
	}](strings.Replace(orderV2, "coupon", "voucher", 1)).Append(nil, struct {
		order2
		Voucher *string `avro:"voucher"`
	}{order2{User: "ann", Lines: []string{"tea"}}, &voucher})
	if v, err := read(b); err != nil || v.Coupon != nil || len(v.Lines) != 1 {
		t.Errorf("a field that is not known is skipped: %+v, %v", v, err)
	}
}

// TestLogicalTypesKeepTheirSchemas: two schemas that differ in a logical type alone
// have the same fingerprint; neither may be decoded as the other.
func TestLogicalTypesKeepTheirSchemas(t *testing.T) {
	t.Parallel()
	schema := func(unit string) string {
		return `{"type": "record", "name": "E", "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-` + unit + `"}}]}`
	}
	type event struct {
		At time.Time `avro:"at"`
	}
	at := time.Date(2001, 7, 14, 9, 3, 2, 5e6, time.UTC)
	for _, unit := range []string{"millis", "micros"} {
		s := avro.New[event](schema(unit))
		b, err := s.Append(nil, event{at})
		if err != nil {
			t.Fatal(err)
		}
		if v, err := s.Decode(b); err != nil || !v.At.Equal(at) {
			t.Errorf("%s: %v, %v", unit, v, err)
		}
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	line := `{"type": "record", "name": "Line", "namespace": "shop", "fields": [{"name": "item", "type": "string"}]}`
	cart := `{"type": "record", "name": "Cart", "namespace": "shop", "fields": [{"name": "lines", "type": {"type": "array", "items": "shop.Line"}}]}`
	type oneLine struct {
		Item string `avro:"item"`
	}
	type basket struct {
		Lines []oneLine `avro:"lines"`
	}
	s := avro.New[basket](cart, avro.Uses("shop.Line", line))
	b, err := s.Append(nil, basket{[]oneLine{{"tea"}}})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Decode(b); err != nil || v.Lines[0].Item != "tea" {
		t.Errorf("%v, %v", v, err)
	}
	d, err := s.Schema()
	if err != nil || d.Name != "shop.Cart" || len(d.Uses) != 1 || d.Uses[0].Name != "shop.Line" {
		t.Errorf("%+v, %v", d, err)
	}
	// A schema of the same process is not seen by others.
	if err := avro.New[basket](cart).Check(); err == nil || !strings.Contains(err.Error(), "shop.Line") {
		t.Errorf("a reference that was not given: %v", err)
	}
}

func TestMistakesAreReported(t *testing.T) {
	t.Parallel()
	s := avro.New[order1](`{"type": "record"`)
	_, errAppend := s.Append(nil, order1{})
	_, errDecode := s.Decode(nil)
	for _, err := range []error{s.Check(), errAppend, errDecode} {
		if err == nil || !strings.HasPrefix(err.Error(), "avro: schema: ") {
			t.Errorf("%v", err)
		}
	}
	if err := avro.New[order2](orderV2, avro.Since(`"string"`)).Check(); err == nil || !strings.HasPrefix(err.Error(), "older schema 1: ") {
		t.Errorf("%v", err)
	}
	type wrong struct {
		User int `avro:"user"`
	}
	if _, err := avro.New[wrong](orderV1).Append(nil, wrong{}); err == nil {
		t.Error("a struct of another shape was written")
	}
}

// TestDecodedValuesAreOwn: the bytes belong to the batch.
func TestDecodedValuesAreOwn(t *testing.T) {
	t.Parallel()
	s := avro.New[order1](orderV1)
	b, err := s.Append(nil, order1{"ann", 1})
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] = 'x'
	}
	if v.User != "ann" {
		t.Errorf("decoded value changed with the batch: %q", v.User)
	}
}

// TestHostileLengths: a length of many gigabytes allocates nothing like it.
func TestHostileLengths(t *testing.T) {
	t.Parallel()
	long := []byte("\xfe\xff\xff\xff\xff\xff\xff\xff\x7f")
	for _, schema := range []string{`"string"`, `"bytes"`, `{"type": "array", "items": "string"}`, `{"type": "map", "values": "long"}`, orderV1} {
		s := avro.New[any](schema)
		if v, err := s.Decode(long); err == nil {
			t.Errorf("%s: %v", schema, v)
		}
	}
}

func TestPointers(t *testing.T) {
	t.Parallel()
	r := new(serde.Registry)
	serde.Register(r, avro.New[order1](orderV1))
	s, err := serde.For[*order1](r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Append(nil, &order1{"ann", 1})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := s.Decode(b); err != nil || *v != (order1{"ann", 1}) {
		t.Errorf("%v, %v", v, err)
	}
	p := avro.New[*order1](orderV1)
	if again, err := p.Append(nil, &order1{"ann", 1}); err != nil || string(again) != string(b) {
		t.Errorf("%x, %v", again, err)
	}
	if v, err := p.Decode(b); err != nil || *v != (order1{"ann", 1}) {
		t.Errorf("%v, %v", v, err)
	}
}

func TestAllocations(t *testing.T) {
	s := avro.New[order1](orderV1)
	buf := make([]byte, 0, 64)
	b, err := s.Append(nil, order1{"ann", 1})
	if err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(200, func() {
		if _, err := s.Append(buf, order1{"ann", 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Decode(b); err != nil {
			t.Fatal(err)
		}
	})
	// The value on its way in and out through an interface; strings come from a slab.
	if n > 3 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	s := avro.New[order2](orderV2)
	coupon := "c"
	b, err := s.Append(nil, order2{"ann", 950, &coupon, []string{"tea"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := s.Decode(b)
		if err != nil {
			return
		}
		again, err := s.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := s.Decode(again); err != nil || !reflect.DeepEqual(back, v) {
			t.Errorf("%x decodes as %+v, and that comes back as %+v, %v", b, v, back, err)
		}
	})
}

func ExampleNew() {
	type Order struct {
		User  string `avro:"user"`
		Cents int64  `avro:"cents"`
	}
	s := avro.New[Order](`{"type": "record", "name": "Order", "namespace": "shop", "fields": [
		{"name": "user", "type": "string"},
		{"name": "cents", "type": "long"}]}`)
	b, err := s.Append(nil, Order{"ann", 950})
	fmt.Printf("%x %v\n", b, err)
	// Output: 06616e6eec0e <nil>
}

func ExampleSince() {
	type Order struct {
		User   string `avro:"user"`
		Coupon string `avro:"coupon"`
	}
	const v1 = `{"type": "record", "name": "Order", "fields": [{"name": "user", "type": "string"}]}`
	const v2 = `{"type": "record", "name": "Order", "fields": [
		{"name": "user", "type": "string"},
		{"name": "coupon", "type": "string", "default": "none"}]}`

	old, _ := avro.New[map[string]any](v1, avro.Fingerprint()).Append(nil, map[string]any{"user": "ann"})
	o, err := avro.New[Order](v2, avro.Since(v1)).Decode(old)
	fmt.Printf("%+v %v\n", o, err)
	// Output: {User:ann Coupon:none} <nil>
}
