package serde_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json/v2"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/window"
)

type vector struct {
	Value string
	Bytes *string
}

// vectors are bytes that the serializers of Apache Kafka 4.4.0 wrote.
func vectors(t *testing.T, name string) []vector {
	t.Helper()
	b, err := os.ReadFile("testdata/serdes.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	b, err = json.Marshal(all[name])
	if err != nil {
		t.Fatal(err)
	}
	var v []vector
	if err := json.Unmarshal(b, &v, json.MatchCaseInsensitiveNames(true)); err != nil || len(v) < 3 {
		t.Fatalf("%s: %d vectors, %v", name, len(v), err)
	}
	return v
}

// checkVectors encodes and decodes each value that is not null, which serdes
// never see.
func checkVectors[T any](name string, parse func(string) (T, error)) func(*testing.T) {
	return func(t *testing.T) {
		s, err := serde.For[T](new(serde.Registry))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vectors(t, name) {
			if v.Bytes == nil {
				continue
			}
			want, err := hex.DecodeString(*v.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			val, err := parse(v.Value)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Append([]byte("x"), val)
			if err != nil || !bytes.Equal(got[1:], want) || got[0] != 'x' {
				t.Errorf("%s: encodes as %x, %v, want %x", v.Value, got, err, want)
			}
			back, err := s.Decode(want)
			// Compared as printed: a NaN is not equal to itself.
			if err != nil || fmt.Sprint(back) != fmt.Sprint(val) {
				t.Errorf("%x: decodes as %v, %v, want %v", want, back, err, val)
			}
		}
	}
}

type (
	uuid    [16]byte
	userID  string
	cents   int64
	version int32
	blob    []byte
)

func TestBytesOfKafka(t *testing.T) {
	whole := func(bits int) func(string) (int64, error) {
		return func(s string) (int64, error) { return strconv.ParseInt(s, 10, bits) }
	}
	float := func(bits int) func(string) (float64, error) {
		return func(s string) (float64, error) { return strconv.ParseFloat(s, bits) }
	}
	t.Run("String", checkVectors("String", func(s string) (string, error) { return s, nil }))
	t.Run("String/named", checkVectors("String", func(s string) (userID, error) { return userID(s), nil }))
	t.Run("Long", checkVectors("Long", whole(64)))
	t.Run("Long/int", checkVectors("Long", strconv.Atoi))
	t.Run("Long/named", checkVectors("Long", func(s string) (cents, error) { n, err := whole(64)(s); return cents(n), err }))
	t.Run("Integer", checkVectors("Integer", func(s string) (int32, error) { n, err := whole(32)(s); return int32(n), err }))
	t.Run("Integer/named", checkVectors("Integer", func(s string) (version, error) { n, err := whole(32)(s); return version(n), err }))
	t.Run("Short", checkVectors("Short", func(s string) (int16, error) { n, err := whole(16)(s); return int16(n), err }))
	t.Run("Double", checkVectors("Double", float(64)))
	t.Run("Float", checkVectors("Float", func(s string) (float32, error) { f, err := float(32)(s); return float32(f), err }))
	t.Run("Boolean", checkVectors("Boolean", strconv.ParseBool))
	t.Run("ByteArray", checkVectors("ByteArray", hex.DecodeString))
	t.Run("ByteArray/named", checkVectors("ByteArray", func(s string) (blob, error) { b, err := hex.DecodeString(s); return b, err }))
	t.Run("UUID", checkVectors("UUID", func(s string) (u uuid, err error) {
		b, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(s), []byte("-"), nil)))
		copy(u[:], b)
		return u, err
	}))
}

func TestWindowedBytesOfKafka(t *testing.T) {
	checkWindowed(t, "TimeWindowedString", func(start, end int64) (serde.Serde[window.Windowed[string]], window.Window) {
		return window.Serde(serde.String, time.Duration(end-start)*time.Millisecond), window.Between(start, end)
	})
	// Kafka's sessions end with their last record, a Window a moment after it.
	checkWindowed(t, "SessionWindowedString", func(start, end int64) (serde.Serde[window.Windowed[string]], window.Window) {
		return window.SessionSerde(serde.String), window.Between(start, end+1)
	})
}

func checkWindowed(t *testing.T, name string, of func(start, end int64) (serde.Serde[window.Windowed[string]], window.Window)) {
	t.Helper()
	for _, v := range vectors(t, name) {
		want, err := hex.DecodeString(*v.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.LastIndexByte([]byte(v.Value), '[')
		var start, end int64
		if _, err := fmt.Sscanf(v.Value[at:], "[%d,%d]", &start, &end); err != nil {
			t.Fatal(err)
		}
		s, w := of(start, end)
		key := window.Windowed[string]{Key: v.Value[:at], Window: w}
		got, err := s.Append(nil, key)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: encodes as %x, %v, want %x", v.Value, got, err, want)
		}
		if back, err := s.Decode(want); err != nil || back != key {
			t.Errorf("%x: decodes as %v, %v, want %v", want, back, err, key)
		}
	}
}

type point struct {
	X, Y int
	Tags map[string]int
}

// lamp has a binary form with pointer methods; it is not JSON's business.
type lamp struct{ on bool }

func (l *lamp) MarshalBinary() ([]byte, error) {
	if l.on {
		return []byte("on"), nil
	}
	return []byte("off"), nil
}

func (l *lamp) UnmarshalBinary(b []byte) error {
	switch string(b) {
	case "on", "off":
		l.on = string(b) == "on"
		return nil
	}
	return errors.New("neither on nor off")
}

// roundTrip checks the bytes and the way back.
func roundTrip[T any](v T, want string) func(*testing.T) {
	return func(t *testing.T) {
		s, err := serde.For[T](new(serde.Registry))
		if err != nil {
			t.Fatal(err)
		}
		b, err := s.Append(nil, v)
		if err != nil || string(b) != want {
			t.Fatalf("encodes as %q, %v, want %q", b, err, want)
		}
		back, err := s.Decode(b)
		if err != nil || !reflect.DeepEqual(back, v) {
			t.Errorf("decodes as %+v, %v, want %+v", back, err, v)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestSerdesByType(t *testing.T) {
	at := time.Date(2001, 7, 14, 9, 3, 2, 5, time.UTC)
	atBytes := "\x00\x00\x00\x00\x3b\x50\x0a\xc6\x00\x00\x00\x05"
	t.Run("uint8", roundTrip(uint8(200), "\xc8"))
	t.Run("int8", roundTrip(int8(-1), "\xff"))
	t.Run("uint16", roundTrip(uint16(0xfffe), "\xff\xfe"))
	t.Run("uint32", roundTrip(uint32(1), "\x00\x00\x00\x01"))
	t.Run("uint64", roundTrip(uint64(math.MaxUint64), "\xff\xff\xff\xff\xff\xff\xff\xff"))
	t.Run("uint", roundTrip(uint(7), "\x00\x00\x00\x00\x00\x00\x00\x07"))
	t.Run("time", roundTrip(at, atBytes))
	t.Run("zero time", roundTrip(time.Time{}, "\xff\xff\xff\xf1\x88\x6e\x09\x00\x00\x00\x00\x00"))
	t.Run("struct", roundTrip(point{1, 2, map[string]int{"b": 1, "a": 2}}, `{"X":1,"Y":2,"Tags":{"a":2,"b":1}}`))
	t.Run("slice", roundTrip([]string{"a", "b"}, `["a","b"]`))
	t.Run("map", roundTrip(map[string]bool{"z": true, "a": false}, `{"a":false,"z":true}`))
	t.Run("address", roundTrip(netip.MustParseAddr("10.0.0.1"), "\x0a\x00\x00\x01"))
	t.Run("binary", roundTrip(lamp{on: true}, "on"))
	t.Run("*binary", roundTrip(&lamp{on: true}, "on"))
	t.Run("*string", roundTrip(ptr("x"), "x"))
	t.Run("*named", roundTrip(ptr(userID("x")), "x"))
	t.Run("*int64", roundTrip(ptr(int64(1)), "\x00\x00\x00\x00\x00\x00\x00\x01"))
	t.Run("*time", roundTrip(&at, atBytes))
	t.Run("*bytes", roundTrip(ptr([]byte("x")), "x"))
	t.Run("*uuid", roundTrip(&uuid{0x12}, "12000000-0000-0000-0000-000000000000"))
	t.Run("*struct", roundTrip(&point{X: 1, Tags: map[string]int{}}, `{"X":1,"Y":0,"Tags":{}}`))
}

type hidden struct{ n int }

type tree struct {
	Left, Right *tree
	Hook        func()
}

func TestTypesWithoutSerde(t *testing.T) {
	check := func(name string, err error, want string) {
		t.Helper()
		if !errors.Is(err, serde.ErrNoSerde) || err.Error() != want {
			t.Errorf("%s: error is %v, want %s", name, err, want)
		}
	}
	r := new(serde.Registry)
	_, err := serde.For[chan int](r)
	check("chan", err, "no serde for type chan int: chan int is a chan, which JSON cannot say")
	_, err = serde.For[hidden](r)
	check("hidden", err, "no serde for type serde_test.hidden: serde_test.hidden has no exported field: JSON would write it as {}")
	_, err = serde.For[*tree](r)
	check("tree", err, "no serde for type serde_test.tree: serde_test.tree.Hook is a func, which JSON cannot say")
	_, err = serde.For[[]fmt.Stringer](r)
	check("interface", err, "no serde for type []fmt.Stringer: []fmt.Stringer element is an interface with methods, which JSON cannot read back")
	_, err = serde.For[**string](r)
	check("pointers", err, "no serde for a pointer to *string: null is one level deep")
}

func TestRegister(t *testing.T) {
	r := new(serde.Registry)
	serde.Register(r, serde.Of(
		func(dst []byte, h hidden) ([]byte, error) { return strconv.AppendInt(dst, int64(h.n), 10), nil },
		func(b []byte) (hidden, error) { n, err := strconv.Atoi(string(b)); return hidden{n}, err },
	))
	s, err := serde.For[hidden](r)
	if err != nil {
		t.Fatal(err)
	}
	p, err := serde.For[*hidden](r)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := s.Append(nil, hidden{42}); err != nil || string(b) != "42" {
		t.Errorf("encodes as %q, %v", b, err)
	}
	if v, err := p.Decode([]byte("42")); err != nil || v.n != 42 {
		t.Errorf("pointer decodes as %v, %v", v, err)
	}
	if v, err := p.Decode([]byte("x")); err == nil || v != nil {
		t.Errorf("bad bytes decode as %v, %v", v, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	check := func(name string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: bad bytes were taken", name)
		}
	}
	_, err := serde.Int64.Decode([]byte{1, 2, 3})
	check("short int64", err)
	if want := "serde: int64 takes 8 bytes, got 3"; err.Error() != want {
		t.Errorf("error is %q, want %q", err, want)
	}
	_, err = serde.Int64.Decode(make([]byte, 9))
	check("long int64", err)
	_, err = serde.Bool.Decode([]byte{2})
	check("bool 2", err)
	_, err = serde.Float64.Decode(nil)
	check("empty float64", err)
	_, err = serde.Time.Decode([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"))
	check("time with too many nanoseconds", err)
	_, err = serde.UUID[uuid]().Decode([]byte("12000000-0000-0000-0000_000000000000"))
	check("UUID without dash", err)
	_, err = serde.UUID[uuid]().Decode([]byte("1200000g-0000-0000-0000-000000000000"))
	check("UUID with a letter", err)
	_, err = serde.JSON[point]().Decode([]byte(`{"X":"1"}`))
	check("JSON of another type", err)
}

func TestDecodedBytesAreOwn(t *testing.T) {
	b := []byte("abc")
	v, err := serde.Bytes.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	b[0] = 'x'
	if string(v) != "abc" {
		t.Errorf("decoded bytes changed with the batch: %q", v)
	}
	if v, err := serde.Bytes.Decode([]byte{}); err != nil || v == nil {
		t.Errorf("empty decodes as %v, %v: nil would be null", v, err)
	}
}

func TestNaNsAreOneKey(t *testing.T) {
	a, _ := serde.Float64.Append(nil, math.NaN())
	b, _ := serde.Float64.Append(nil, -math.NaN())
	if !bytes.Equal(a, b) {
		t.Errorf("two NaNs encode as %x and %x", a, b)
	}
}

func TestFixedSizesDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 64)
	s, err := serde.For[cents](new(serde.Registry))
	if err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(100, func() {
		b, err := s.Append(buf, 42)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := s.Decode(b); err != nil || v != 42 {
			t.Fatal(v, err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleFor() {
	type Order struct {
		User   string
		Amount float64
	}
	s, err := serde.For[Order](new(serde.Registry))
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := s.Append(nil, Order{"ann", 9.5})
	fmt.Println(string(b), err)
	// Output: {"User":"ann","Amount":9.5} <nil>
}
