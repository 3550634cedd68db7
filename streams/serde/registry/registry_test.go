package registry_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/serde/avro"
	"github.com/millrace/millrace/streams/serde/jsonschema"
	"github.com/millrace/millrace/streams/serde/protobuf"
	"github.com/millrace/millrace/streams/serde/protobuf/shoptest"
	"github.com/millrace/millrace/streams/serde/registry"
	"github.com/millrace/millrace/streams/serde/registry/registrytest"
)

const (
	orderV1 = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"user","type":"string"},{"name":"cents","type":"long"}]}`
	orderV2 = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"user","type":"string"},{"name":"cents","type":"long"},{"name":"coupon","type":"string","default":"none"}]}`
	// A required field more: old records do not have it.
	orderV3 = `{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"user","type":"string"},{"name":"cents","type":"long"},{"name":"street","type":"string"}]}`
)

type order1 struct {
	User  string `avro:"user"`
	Cents int64  `avro:"cents"`
}

type order2 struct {
	User   string `avro:"user"`
	Cents  int64  `avro:"cents"`
	Coupon string `avro:"coupon"`
}

func open(t *testing.T, c registry.Config) *registry.Client {
	t.Helper()
	client, err := registry.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// on is a serde for a topic's values.
func on[T any](topic string, s serde.Serde[T]) serde.Serde[T] {
	return s.(serde.Topical[T]).ForTopic(topic, serde.Value)
}

// eachRegistry runs a test on the fake, and on the registry that the environment
// names, such as http://localhost:8081. Topics get a prefix, as it may be used
// twice.
func eachRegistry(t *testing.T, f func(t *testing.T, url, prefix string)) {
	t.Run("fake", func(t *testing.T) {
		t.Parallel()
		f(t, registrytest.Start(t).URL, "")
	})
	if url := os.Getenv("MILLRACE_SCHEMA_REGISTRY"); url != "" {
		t.Run("real", func(t *testing.T) {
			f(t, url, fmt.Sprintf("t%x-", time.Now().UnixNano()))
		})
	}
}

func encode[T any](t *testing.T, s serde.Serde[T], v T) []byte {
	t.Helper()
	b, err := s.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wantValue[T any](t *testing.T, s serde.Serde[T], b []byte, want T) {
	t.Helper()
	if v, err := s.Decode(b); err != nil || !reflect.DeepEqual(v, want) {
		t.Errorf("%x decodes as %+v, %v, want %+v", b, v, err, want)
	}
}

// TestAvroEvolution: the old program and the new one at the same topic read each
// other's records, neither knowing the other's schema.
func TestAvroEvolution(t *testing.T) {
	eachRegistry(t, func(t *testing.T, url, prefix string) {
		client := func() *registry.Client { return open(t, registry.Config{URLs: []string{url}}) }
		older := on(prefix+"orders", registry.Of(client(), avro.New[order1](orderV1), registry.AutoRegister()))
		b1 := encode(t, older, order1{"ann", 950})
		newer := on(prefix+"orders", registry.Of(client(), avro.New[order2](orderV2), registry.AutoRegister()))
		wantValue(t, newer, b1, order2{"ann", 950, "none"})
		b2 := encode(t, newer, order2{"bob", 7, "spring"})
		if string(b1[:5]) == string(b2[:5]) {
			t.Errorf("both have the number %x", b1[:5])
		}
		wantValue(t, newer, b2, order2{"bob", 7, "spring"})
		wantValue(t, older, b2, order1{"bob", 7})

		refused := on(prefix+"orders", registry.Of(client(), avro.New[any](orderV3), registry.AutoRegister()))
		_, err := refused.Append(nil, map[string]any{"user": "ann", "cents": 1, "street": "x"})
		if !errors.Is(err, registry.ErrIncompatible) || !strings.Contains(err.Error(), "subject "+prefix+"orders-value") || !strings.Contains(err.Error(), "street") {
			t.Errorf("a schema that old records do not follow: %v", err)
		}
		if errors.Is(err, serde.ErrUnavailable) {
			t.Errorf("it is no matter of time: %v", err)
		}
		// Without AutoRegister only what is there is used.
		wantValue(t, on(prefix+"orders", registry.Of(client(), avro.New[order2](orderV2))), b1, order2{"ann", 950, "none"})
		if b := encode(t, on(prefix+"orders", registry.Of(client(), avro.New[order2](orderV2))), order2{"bob", 7, "spring"}); string(b) != string(b2) {
			t.Errorf("%x, want %x", b, b2)
		}
		_, err = on(prefix+"elsewhere", registry.Of(client(), avro.New[order2](orderV2))).Append(nil, order2{})
		if !errors.Is(err, registry.ErrNotRegistered) || !strings.Contains(err.Error(), "subject "+prefix+"elsewhere-value") {
			t.Errorf("a subject that is not there: %v", err)
		}
	})
}

// TestUseLatest: records are written by the subject's schema, though the type's own
// is another.
func TestUseLatest(t *testing.T) {
	eachRegistry(t, func(t *testing.T, url, prefix string) {
		client := open(t, registry.Config{URLs: []string{url}})
		b := encode(t, on(prefix+"latest", registry.Of(client, avro.New[order2](orderV2), registry.AutoRegister())), order2{"ann", 1, "x"})
		type wide struct {
			order2
			Note string `avro:"note"`
		}
		own := strings.Replace(orderV2, `"fields":[`, `"fields":[{"name":"note","type":"string","default":""},`, 1)
		s := on(prefix+"latest", registry.Of(client, avro.New[wide](own), registry.UseLatest()))
		if got := encode(t, s, wide{order2{"ann", 1, "x"}, "not written"}); string(got) != string(b) {
			t.Errorf("%x, want %x", got, b)
		}
		wantValue(t, s, b, wide{order2{"ann", 1, "x"}, ""})
	})
}

// TestProtobuf: the file and what it imports are registered, and the record names
// its message.
func TestProtobuf(t *testing.T) {
	eachRegistry(t, func(t *testing.T, url, prefix string) {
		client := open(t, registry.Config{URLs: []string{url}})
		topic := prefix + "carts"
		s := on(topic, registry.Of(client, protobuf.New[*shoptest.Order_Line](), registry.AutoRegister()))
		b := encode(t, s, &shoptest.Order_Line{Item: "tea"})
		if string(b[5:]) != "\x04\x00\x00\x0a\x03tea" {
			t.Errorf("%x", b)
		}
		if v, err := s.Decode(b); err != nil || v.GetItem() != "tea" {
			t.Errorf("%v, %v", v, err)
		}
		// Another client finds what is there.
		again := on(topic, registry.Of(open(t, registry.Config{URLs: []string{url}}), protobuf.New[*shoptest.Order_Line]()))
		if b2 := encode(t, again, &shoptest.Order_Line{Item: "tea"}); string(b2) != string(b) {
			t.Errorf("%x, want %x", b2, b)
		}
		order := on(topic, registry.Of(client, protobuf.New[*shoptest.Order](), registry.UseLatest()))
		if o := encode(t, order, &shoptest.Order{User: "ann"}); string(o[:5]) != string(b[:5]) || string(o[5:]) != "\x00\x0a\x03ann" {
			t.Errorf("%x", o)
		}
		if v, err := order.Decode(b); err == nil || !strings.Contains(err.Error(), "is a shop.Order.Line, not a shop.Order") {
			t.Errorf("%v, %v", v, err)
		}
	})
}

func TestJSONSchema(t *testing.T) {
	eachRegistry(t, func(t *testing.T, url, prefix string) {
		type order struct {
			User string `json:"user"`
		}
		client := open(t, registry.Config{URLs: []string{url}})
		const schema = `{"title":"Order","type":"object","properties":{"user":{"type":"string","minLength":1}},"additionalProperties":false}`
		s := on(prefix+"json", registry.Of(client, jsonschema.New[order](schema), registry.AutoRegister()))
		b := encode(t, s, order{"ann"})
		if string(b[5:]) != `{"user":"ann"}` {
			t.Errorf("%q", b)
		}
		wantValue(t, s, b, order{"ann"})
		if _, err := s.Append(nil, order{}); !errors.Is(err, jsonschema.ErrInvalid) {
			t.Errorf("%v", err)
		}
		// A record of another kind of schema is no JSON.
		a := encode(t, on(prefix+"avro", registry.Of(client, avro.New[order1](orderV1), registry.AutoRegister())), order1{"ann", 1})
		if _, err := s.Decode(a); err == nil || !strings.Contains(err.Error(), "kind AVRO, this serde is of kind JSON") {
			t.Errorf("%v", err)
		}
	})
}

// TestReferences: what a schema refers to is registered before it, under its name,
// and fetched again by whoever reads.
func TestReferences(t *testing.T) {
	eachRegistry(t, func(t *testing.T, url, prefix string) {
		type oneLine struct {
			Item string `avro:"item"`
		}
		type cart struct {
			Line oneLine `avro:"line"`
		}
		line := `{"type":"record","name":"Line","namespace":"shop","fields":[{"name":"item","type":"string"}]}`
		schema := `{"type":"record","name":"Cart","namespace":"shop","fields":[{"name":"line","type":"shop.Line"}]}`
		write := registry.Of(open(t, registry.Config{URLs: []string{url}}), avro.New[cart](schema, avro.Uses("shop.Line", line)), registry.AutoRegister())
		b := encode(t, on(prefix+"refs", write), cart{oneLine{"tea"}})
		flat := `{"type":"record","name":"Cart","namespace":"shop","fields":[{"name":"line","type":` + line + `},{"name":"n","type":"int","default":3}]}`
		type counted struct {
			Line oneLine `avro:"line"`
			N    int     `avro:"n"`
		}
		read := registry.Of(open(t, registry.Config{URLs: []string{url}}), avro.New[counted](flat))
		wantValue(t, read, b, counted{oneLine{"tea"}, 3})
	})
}

// TestBytesOfConfluent: magic, number and payload as in Confluent's description of
// the format.
func TestBytesOfConfluent(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	client := open(t, registry.Config{URLs: []string{r.URL}})
	for range 0x0102 {
		r.Add("fill", "JSON", fmt.Sprint(len(r.Subject("fill"))))
	}
	if id := r.Add("orders-value", "AVRO", orderV1); id != 0x0103 {
		t.Fatal(id)
	}
	s := on("orders", registry.Of(client, avro.New[order1](orderV1)))
	want := "\x00\x00\x00\x01\x03\x06ann\xec\x0e"
	if b, err := s.Append([]byte("x"), order1{"ann", 950}); err != nil || string(b) != "x"+want {
		t.Errorf("%x, %v, want %x", b, err, want)
	}
	wantValue(t, s, []byte(want), order1{"ann", 950})
	for b, want := range map[string]string{
		"":                       "it has 0 bytes, at least 5 are needed",
		"\x00\x00\x00\x01":       "it has 4 bytes, at least 5 are needed",
		"{\"user\":\"ann\"}":     "it begins with byte 0x7b in place of 0; was it written without a registry?",
		"\x01" + "0123456789abc": "GUID",
	} {
		if _, err := s.Decode([]byte(b)); !errors.Is(err, registry.ErrNotFramed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", b, err, want)
		}
	}
	if _, err := s.Decode([]byte("\x00\x00\x00\x01\x03\x06a")); err == nil || !strings.HasPrefix(err.Error(), "schema 259: avro: ") {
		t.Errorf("cut off: %v", err)
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	client := open(t, registry.Config{URLs: []string{r.URL}})
	use := func(topic string, part serde.Part, opts ...registry.Opt) error {
		s := registry.Of(client, avro.New[order1](orderV1), append(opts, registry.AutoRegister())...)
		if topic != "" {
			s = s.(serde.Topical[order1]).ForTopic(topic, part)
		}
		_, err := s.Append(nil, order1{})
		return err
	}
	for subject, err := range map[string]error{
		"a-value":             use("a", serde.Value),
		"a-key":               use("a", serde.Key),
		"shop.Order":          use("b", serde.Value, registry.SubjectBy(registry.ByRecord)),
		"c-shop.Order":        use("c", serde.Value, registry.SubjectBy(registry.ByTopicAndRecord)),
		"all orders/of today": use("", serde.Value, registry.Subject("all orders/of today")),
	} {
		if err != nil || len(r.Subject(subject)) != 1 {
			t.Errorf("%s: %d schemas, %v", subject, len(r.Subject(subject)), err)
		}
	}
	if err := use("", serde.Value); err == nil || !strings.Contains(err.Error(), "there is none here") {
		t.Errorf("no topic: %v", err)
	}
	s := registry.Of(client, avro.New[int64](`"long"`), registry.SubjectBy(registry.ByRecord), registry.AutoRegister())
	if _, err := on("d", s).Append(nil, 1); err == nil || !strings.Contains(err.Error(), "its schema has no name") {
		t.Errorf("no record name: %v", err)
	}
}

// TestMistakes: all of them are known before a record comes.
func TestMistakes(t *testing.T) {
	t.Parallel()
	client := open(t, registry.Config{URLs: []string{"http://localhost:1"}, Timeout: time.Millisecond})
	for want, s := range map[string]serde.Serde[order1]{
		"registry: the client is nil":                             registry.Of(nil, avro.New[order1](orderV1)),
		"registry: AutoRegister and UseLatest exclude each other": registry.Of(client, avro.New[order1](orderV1), registry.AutoRegister(), registry.UseLatest()),
		"registry: SubjectBy needs a rule":                        registry.Of(client, avro.New[order1](orderV1), registry.SubjectBy(nil)),
		"avro: schema: avro: unknown type: {":                     registry.Of(client, avro.New[order1](`{`)),
	} {
		err := s.(serde.Checked).Check()
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if _, got := s.Append(nil, order1{}); got == nil || got.Error() != want {
			t.Errorf("Append: %v, want %s", got, want)
		}
		if _, got := s.Decode([]byte("\x00\x00\x00\x00\x01x")); got == nil || got.Error() != want {
			t.Errorf("Decode: %v, want %s", got, want)
		}
	}
}
