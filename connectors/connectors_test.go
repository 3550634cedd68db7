package connectors

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestGuaranteed(t *testing.T) {
	t.Parallel()
	weak := Weakness{EffectivelyOnce, "mode x"}
	for _, c := range []struct {
		name    string
		spec    Spec
		level   Isolation
		want    Guarantee
		because int
	}{
		{"transactional", Spec{Class: Transactional}, ReadCommitted, ExactlyOnce, 0},
		{"versioned", Spec{Class: Versioned}, ReadCommitted, EffectivelyOnce, 0},
		{"plain", Spec{Class: Plain}, ReadCommitted, AtLeastOnce, 0},
		{"unknown class", Spec{}, ReadCommitted, AtLeastOnce, 0},
		{"weak setting", Spec{Class: Transactional, Weakened: []Weakness{weak}}, ReadCommitted, EffectivelyOnce, 1},
		{"weak setting that takes nothing", Spec{Class: Versioned, Weakened: []Weakness{weak}}, ReadCommitted, EffectivelyOnce, 0},
		{"isolation", Spec{Class: Transactional}, ReadUncommitted, AtLeastOnce, 1},
		{"both", Spec{Class: Transactional, Weakened: []Weakness{weak}}, ReadUncommitted, AtLeastOnce, 2},
		{"isolation of a plain sink", Spec{Class: Plain}, ReadUncommitted, AtLeastOnce, 0},
	} {
		got := Guaranteed(c.spec, c.level)
		if got.Guarantee != c.want || len(got.Because) != c.because {
			t.Errorf("%s: got %s, want %s with %d reasons", c.name, got, c.want, c.because)
		}
		if err := got.Allow(false); (err != nil) != (c.because > 0) || err != nil && !errors.Is(err, ErrConfig) {
			t.Errorf("%s: Allow(false) = %v", c.name, err)
		}
		if err := got.Allow(true); err != nil {
			t.Errorf("%s: Allow(true) = %v", c.name, err)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]fmt.Stringer{
		"exactly-once": ExactlyOnce, "Guarantee(0)": Guarantee(0), "versioned": Versioned, "Class(9)": Class(9), "Class(0)": Class(0),
		"read_uncommitted": ReadUncommitted, "Isolation(7)": Isolation(7), "t/3": TP{"t", 3}, "secret": KindSecret, "Kind(-1)": Kind(-1),
	} {
		if got.String() != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTopicID(t *testing.T) {
	t.Parallel()
	id := TopicID{1, 2, 0xfe}
	back, err := ParseTopicID(id.String())
	if err != nil || back != id {
		t.Errorf("%v, %v", back, err)
	}
	for _, bad := range []string{"", "00", strings.Repeat("zz", 16), strings.Repeat("0", 33)} {
		if _, err := ParseTopicID(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestDecoders(t *testing.T) {
	t.Parallel()
	start := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	stamp := make([]byte, 8)
	for i := range 8 {
		stamp[i] = byte(start.UnixMilli() >> (56 - 8*i))
	}
	for _, c := range []struct {
		decoder string
		in      string
		want    any // nil = an error
	}{
		{"bytes", "\xff\x00", []byte("\xff\x00")},
		{"string", "grün", "grün"},
		{"string", "\xff", nil},
		{"int64", "\x00\x00\x00\x00\x00\x00\x01\x02", int64(258)},
		{"int64", "\xff\xff\xff\xff\xff\xff\xff\xfe", int64(-2)},
		{"int64", "1234567", nil},
		{"float64", "\x3f\xf8\x00\x00\x00\x00\x00\x00", 1.5},
		{"float64", "", nil},
		{"json", ` {"n":12345678901234567890,"a":[null,true]} `, map[string]any{"n": json.Number("12345678901234567890"), "a": []any{nil, true}}},
		{"json", `{} {}`, nil},
		{"json", `{"a":`, nil},
		{"json", ``, nil},
		{"windowed(string)", "CA" + string(stamp), WindowedKey{"CA", start}},
		{"windowed(int64)", string(stamp) + string(stamp), WindowedKey{start.UnixMilli(), start}},
		{"windowed(string)", "short", nil},
		{"windowed(int64)", "x" + string(stamp), nil},
	} {
		d, err := DecoderByName(c.decoder)
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Decode([]byte(c.in))
		if (err != nil) != (c.want == nil) || err == nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s of %q: got %#v, %v; want %#v", c.decoder, c.in, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "avro", "windowed(", "windowed(avro)", "windowed()"} {
		if _, err := DecoderByName(bad); !errors.Is(err, ErrConfig) {
			t.Errorf("decoder %q: %v", bad, err)
		}
	}
}

func FuzzDecoders(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"x"]}`))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, d := range []Decoder{Bytes, String, Int64, Float64, JSON, Windowed(JSON), Windowed(Windowed(Int64))} {
			if v, err := d.Decode(b); err != nil && v != nil && v != int64(0) && v != float64(0) {
				t.Errorf("%v beside error %v", v, err)
			}
		}
	})
}

func TestFieldsParse(t *testing.T) {
	t.Parallel()
	fields := Fields{
		{Name: "name", Required: true, Doc: "who"},
		{Name: "mode", Default: "a", OneOf: []string{"a", "b"}},
		{Name: "n", Kind: KindInt, Default: "3", Min: 1, Max: 9},
		{Name: "on", Kind: KindBool},
		{Name: "wait", Kind: KindDuration, Default: "1s"},
		{Name: "list", Kind: KindList},
		{Name: "password", Kind: KindSecret, OneOf: []string{"only-this"}, Default: "only-this"},
	}
	v, err := fields.Parse(Config{"name": "x", "n": "9", "on": "true", "list": " a, b,,c "})
	if err != nil {
		t.Fatal(err)
	}
	if v.String("name") != "x" || v.String("mode") != "a" || v.Int("n") != 9 || !v.Bool("on") ||
		v.Duration("wait") != time.Second || !reflect.DeepEqual(v.List("list"), []string{"a", "b", "c"}) || v.String("nothing") != "" {
		t.Errorf("values %+v", v)
	}
	_, err = fields.Parse(Config{"mode": "c", "n": "10", "on": "perhaps", "wait": "soon", "colour": "red", "password": "hunter2"})
	if !errors.Is(err, ErrConfig) {
		t.Fatal(err)
	}
	for _, want := range []string{"name: required (who)", `mode: "c" is none of a, b`, "n: 10 is outside 1..9", `on: "perhaps"`, `wait: "soon"`, "colour: no such setting", "password: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error repeats a secret: %v", err)
	}
}

func TestRejections(t *testing.T) {
	t.Parallel()
	a, b := &RejectError{Index: 1, Reason: "r", Err: errors.New("a")}, &RejectError{Index: 2, Reason: "r", Err: errors.New("b")}
	got := Rejections(fmt.Errorf("Commit: %w", errors.Join(a, errors.New("other"), fmt.Errorf("deep: %w", b))))
	if len(got) != 2 || got[0] != a || got[1] != b {
		t.Errorf("got %v", got)
	}
	if Rejections(nil) != nil || Rejections(ErrRetry) != nil {
		t.Error("rejections out of nothing")
	}
}

func TestFencedErrorMatches(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("Open: %w", &FencedError{TP: TP{"t", 1}, Mine: Fence{3, "a"}, Stored: Fence{4, "b"}})
	if !errors.Is(err, ErrFenced) || errors.Is(err, ErrRetry) {
		t.Error(err)
	}
	for _, want := range []string{"t/1", "epoch 3 of owner a", "epoch 4 of owner b"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
