package sqlite

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	start := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &connectors.Record{
		TP: connectors.TP{Topic: "t", Partition: 2}, Offset: 7, Time: start.Add(time.Hour),
		Key:     connectors.WindowedKey{Key: map[string]any{"state": "CA"}, Start: start},
		Value:   map[string]any{"a": map[string]any{"b": json.Number("5")}, "null": nil, "list": []any{}},
		Headers: []connectors.Header{{Key: "h.x", Value: []byte("1")}, {Key: "h.x", Value: []byte("2")}},
	}
	for path, want := range map[string]any{
		"topic": "t", "partition": int64(2), "offset": int64(7), "timestamp": start.Add(time.Hour),
		"key": map[string]any{"state": "CA"}, "key.state": "CA", "key.none": nil, "window.start": start,
		"value.a.b": json.Number("5"), "value.null": nil, "value.null.deep": nil, "value.none.deep": nil,
		"header.h.x": []byte("2"), "header.none": nil,
	} {
		p, err := parsePath(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got, err := p.eval(r); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, %v; want %#v", path, got, err, want)
		}
	}
	for _, path := range []string{"", "x", "topic.x", "window", "window.end", "header", "header.", "value."} {
		if _, err := parsePath(path); err == nil {
			t.Errorf("path %q was read", path)
		}
	}
	for _, path := range []string{"value.list.x", "value.a.b.c", "key.state.x"} {
		p, err := parsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.eval(r); err == nil {
			t.Errorf("%s: got %v, want an error", path, got)
		}
	}
	r.Key = "plain"
	p, err := parsePath("window.start")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.eval(r); err == nil {
		t.Error("a window start out of a key without window")
	}
}

func TestConvert(t *testing.T) {
	t.Parallel()
	at := time.Date(2001, 1, 1, 0, 47, 0, 0, time.UTC)
	for _, c := range []struct {
		in   any
		t    Type
		want any // nil with in != nil = an error
	}{
		{nil, Integer, nil},
		{json.Number("9223372036854775807"), Integer, int64(math.MaxInt64)},
		{json.Number("9223372036854775808"), Integer, nil},
		{json.Number("1.5"), Integer, nil},
		{true, Integer, int64(1)},
		{at, Integer, at.UnixMilli()},
		{"7", Integer, nil},
		{json.Number("1e300"), Real, 1e300},
		{json.Number("1e400"), Real, nil},
		{int64(1 << 53), Real, float64(1 << 53)},
		{int64(1<<53 + 1), Real, nil},
		{int64(math.MaxInt64), Real, nil},
		{math.NaN(), Real, nil},
		{"x", Blob, []byte("x")},
		{json.Number("1"), Blob, nil},
		{json.Number("1.50"), Text, "1.50"},
		{at, Text, "2001-01-01T00:47:00Z"},
		{[]any{"a", json.Number("1")}, Text, `["a",1]`},
		{[]byte{0xff}, Text, nil},
		{false, Text, "false"},
		{struct{}{}, Text, nil},
	} {
		got, err := convert(c.in, c.t)
		if (err != nil) != (c.in != nil && c.want == nil) || err == nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v (%T) as %s: got %#v, %v; want %#v", c.in, c.in, c.t, got, err, c.want)
		}
	}
}

func TestAffinity(t *testing.T) {
	t.Parallel()
	for declared, want := range map[string]Type{
		"INTEGER": Integer, "bigint": Integer, "FLOATING POINT": Integer, "VARCHAR(20)": Text, "clob": Text, "": Blob, "BLOB": Blob,
		"DOUBLE": Real, "NUMERIC": Real, "DECIMAL(10,2)": Real,
	} {
		if got := affinity(declared); got != want {
			t.Errorf("%q: %s, want %s", declared, got, want)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Path: "a?b", Table: "_millrace_x", Mode: "replace", BusyTimeout: time.Hour, Columns: []Column{{Name: "a", From: "what"}, {Name: "A"}, {}, {Name: "b", Type: "DATE"}}})
	for _, want := range []string{"Name: required", "Path: ", "Table: ", "Mode: ", "BusyTimeout: 1h0m0s is outside 0..1m0s", `Columns[0]: source "what"`, `Columns[1]: "A" is there twice`, "Columns[2]: a column needs a name", `Columns[3]: type "DATE"`} {
		if !errors.Is(err, connectors.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	c, err := Parse(connectors.Config{
		"name": "n", "path": "p", "table": "t", "mode": "upsert", "keys": "state, day",
		"columns": "state = key, day TEXT = window.start, n integer not null = value.flights",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Column{{Name: "state", From: "key"}, {Name: "day", From: "window.start", Type: Text}, {Name: "n", From: "value.flights", Type: Integer, NotNull: true}}
	if !reflect.DeepEqual(c.Columns, want) || c.BusyTimeout != time.Second {
		t.Errorf("config %+v", c)
	}
	for _, bad := range []connectors.Config{
		{"name": "n", "path": "p", "table": "t", "columns": "= key"},
		{"name": "n", "path": "p", "table": "t", "columns": "a TEXT TEXT"},
		{"name": "n", "path": "p", "table": "t", "mode": "upsert", "columns": "a", "keys": "b"},
		{"name": "n", "path": "p", "table": "t", "keys": "b"},
		{"name": "n", "path": ":memory:", "table": "t"},
	} {
		if _, err := Parse(bad); !errors.Is(err, connectors.ErrConfig) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
