package protobuf_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/serde/protobuf"
	"github.com/millrace/millrace/streams/serde/protobuf/shoptest"
	shopv2 "github.com/millrace/millrace/streams/serde/protobuf/shoptest/v2"
)

func order() *shoptest.Order {
	return &shoptest.Order{
		User: "ann", Total: &shoptest.Money{Currency: "EUR", Cents: 950}, At: timestamppb.New(time.Unix(1e9, 5)),
		Counts: map[string]int32{"tea": 2, "cup": 1, "pot": 3},
		Lines:  []*shoptest.Order_Line{{Item: "tea", Price: &shoptest.Order_Line_Price{Cents: 300}}},
	}
}

// TestFoundByType: a message needs no more than the import; the bytes are the same
// each time, maps included.
func TestFoundByType(t *testing.T) {
	t.Parallel()
	s, err := serde.For[*shoptest.Order](new(serde.Registry))
	if err != nil {
		t.Fatal(err)
	}
	first, err := s.Append([]byte("x"), order())
	if err != nil || first[0] != 'x' {
		t.Fatal(err)
	}
	for range 20 {
		if b, err := s.Append([]byte("x"), order()); err != nil || !bytes.Equal(b, first) {
			t.Fatalf("%x, %v, want %x", b, err, first)
		}
	}
	back, err := s.Decode(first[1:])
	if err != nil || !proto.Equal(back, order()) {
		t.Errorf("%v, %v", back, err)
	}
	if _, err := s.Decode([]byte{0xff}); err == nil || !strings.Contains(err.Error(), "shop.Order") {
		t.Errorf("bad bytes: %v", err)
	}
	if _, err := serde.For[shoptest.Order](new(serde.Registry)); !errors.Is(err, serde.ErrNoSerde) || !strings.Contains(err.Error(), "use *shoptest.Order") {
		t.Errorf("a message that is no pointer: %v", err)
	}
	// What is registered comes first.
	r := new(serde.Registry)
	serde.Register(r, serde.Of(
		func(dst []byte, o *shoptest.Order) ([]byte, error) { return append(dst, o.GetUser()...), nil },
		func(b []byte) (*shoptest.Order, error) { return &shoptest.Order{User: string(b)}, nil },
	))
	if s, err := serde.For[*shoptest.Order](r); err != nil {
		t.Error(err)
	} else if b, err := s.Append(nil, order()); err != nil || string(b) != "ann" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestEvolution: an old record read by the new type keeps what the type does not
// know, and the old type reads it back.
func TestEvolution(t *testing.T) {
	t.Parallel()
	older, newer := protobuf.New[*shoptest.Order](), protobuf.New[*shopv2.Order]()
	b, err := older.Append(nil, order())
	if err != nil {
		t.Fatal(err)
	}
	v2, err := newer.Decode(b)
	if err != nil || v2.GetUser() != "ann" || v2.GetCounts()["pot"] != 3 || v2.GetCoupon() != "" {
		t.Fatalf("%v, %v", v2, err)
	}
	v2.Coupon = "spring"
	if b, err = newer.Append(nil, v2); err != nil {
		t.Fatal(err)
	}
	v1, err := older.Decode(b)
	if err != nil || v1.GetTotal().GetCents() != 950 || len(v1.GetLines()) != 1 || v1.GetCounts()["tea"] != 2 {
		t.Errorf("%v, %v", v1, err)
	}
}

func TestSchemaIsTheFile(t *testing.T) {
	t.Parallel()
	s, err := protobuf.New[*shoptest.Order_Line]().Schema()
	if err != nil || s.Kind != serde.Protobuf || s.Name != "shop.Order.Line" {
		t.Fatalf("%+v, %v", s, err)
	}
	if len(s.Uses) != 1 || s.Uses[0].Name != "money.proto" || s.Uses[0].Schema.Text == "" {
		t.Errorf("uses %+v, want money.proto alone: registries know google's", s.Uses)
	}
	if s, err := protobuf.New[*shoptest.Order](protobuf.Source("syntax …")).Schema(); err != nil || s.Text != "syntax …" {
		t.Errorf("%+v, %v", s, err)
	}
}

const shopText = `
/* message Comment { } */ syntax = "proto3"; // message Line {
package shop;
option (note) = { text: "message Option { }" };
enum State { NEW = 0; }
message Refund { string message = 1; oneof kind { int32 a = 2; } extensions 100 to 200; }
message Order {
	map<string, int32> counts = 4;
	enum Kind { A = 0; }
	message Line { message Price { int64 cents = 1; } option (x) = { a: 1 }; string item = 1 [json_name = "message X {"]; }
}
service Shop { rpc Buy(Order) returns (Refund) { option (y) = { post: '/v1' }; } }
`

// TestPathInFrontOfTheRecord: a record names its message by its place in the schema
// that it was written by, which is a text or a descriptor; maps make no place.
func TestPathInFrontOfTheRecord(t *testing.T) {
	t.Parallel()
	own, err := protobuf.New[*shoptest.Order]().Schema()
	if err != nil {
		t.Fatal(err)
	}
	byText := serde.Schema{Kind: serde.Protobuf, Text: shopText}
	check := func(what string, write func(serde.Schema) (func([]byte) ([]byte, error), error), by serde.Schema, want string) {
		t.Helper()
		f, err := write(by)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if b, err := f(nil); err != nil || string(b) != want {
			t.Errorf("%s: begins with %x, %v, want %x", what, b, err, want)
		}
	}
	check("order", empty[*shoptest.Order], own, "\x00")
	check("line", empty[*shoptest.Order_Line], own, "\x04\x00\x00")
	check("price", empty[*shoptest.Order_Line_Price], own, "\x06\x00\x00\x00")
	check("refund", empty[*shoptest.Refund], own, "\x02\x02")
	check("order, second in the text", empty[*shoptest.Order], byText, "\x02\x02")
	check("line in the text", empty[*shoptest.Order_Line], byText, "\x04\x02\x00")
	check("price in the text", empty[*shoptest.Order_Line_Price], byText, "\x06\x02\x00\x00")
	check("refund in the text", empty[*shoptest.Refund], byText, "\x00")
}

// empty writes a message without fields, so that the path is all there is.
func empty[T proto.Message](by serde.Schema) (func([]byte) ([]byte, error), error) {
	f, err := protobuf.New[T]().WriterBy(by)
	if err != nil {
		return nil, err
	}
	var none T
	return func(dst []byte) ([]byte, error) { return f(dst, none.ProtoReflect().New().Interface().(T)) }, nil
}

func TestRecordOfAnotherMessage(t *testing.T) {
	t.Parallel()
	s := protobuf.New[*shoptest.Order]()
	own, err := s.Schema()
	if err != nil {
		t.Fatal(err)
	}
	read, err := s.ReaderOf(own)
	if err != nil {
		t.Fatal(err)
	}
	for bytes, want := range map[string]string{
		"\x02\x02\x0a\x03ann": "protobuf: the record is a shop.Refund, not a shop.Order",
		"\x02\x04":            "protobuf: the record is message number 2 of the schema, which has 2",
		"\x04\x00\x02":        "protobuf: the record is message number 1 of shop.Order, which has 1",
		"\x02\x01":            "protobuf: the record is message number -1 of the schema, which has 2",
		"":                    "protobuf: the path of the message in front of the record is cut off",
		"\x04\x00":            "protobuf: the path of the message in front of the record has 2 steps",
		"\x04\x00\x80":        "protobuf: the path of the message in front of the record is cut off",
		"\x01":                "protobuf: the path of the message in front of the record has -1 steps",
	} {
		if v, err := read([]byte(bytes)); err == nil || err.Error() != want {
			t.Errorf("%x: %v, %v, want %s", bytes, v, err, want)
		}
	}
	v2 := protobuf.New[*shopv2.Order](protobuf.Accept("shop.Order"))
	readV2, err := v2.ReaderOf(own)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := readV2([]byte("\x00\x0a\x03ann")); err != nil || v.GetUser() != "ann" {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := s.WriterBy(serde.Schema{Text: "message Other { }"}); err == nil || !strings.Contains(err.Error(), "no message shop.Order") {
		t.Errorf("%v", err)
	}
}

func TestSchemaTextsThatEndTooEarly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"message A {":      "ends inside of braces",
		"message A { } }":  "closes more braces",
		"/* message":       "ends inside of a comment",
		`option a = "b`:    "ends inside of quotes",
		"bWVzc2FnZSBBIHt9": "no descriptor",
	} {
		if _, err := protobuf.New[*shoptest.Order]().ReaderOf(serde.Schema{Text: text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestNotAMessageType(t *testing.T) {
	t.Parallel()
	if err := protobuf.New[proto.Message]().Check(); err == nil {
		t.Error("an interface is no message type")
	}
}

func Example() {
	// import _ "github.com/millrace/millrace/streams/serde/protobuf"
	s, err := serde.For[*shoptest.Refund](new(serde.Registry))
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := s.Append(nil, &shoptest.Refund{User: "ann"})
	fmt.Printf("%q %v\n", b, err)
	// Output: "\n\x03ann" <nil>
}
