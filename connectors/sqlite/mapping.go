package sqlite

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/connectors"
)

// Type is a column type of SQLite.
type Type string

// The column types.
const (
	Text    Type = "TEXT"
	Integer Type = "INTEGER"
	Real    Type = "REAL"
	Blob    Type = "BLOB"
)

// path is a parsed Column.From: a root and the fields below it.
type path struct {
	root   string
	fields []string
}

var roots = map[string]bool{ // root -> may have fields
	"key": true, "value": true, "window": true, "header": true,
	"topic": false, "partition": false, "offset": false, "timestamp": false,
}

func parsePath(text string) (path, error) {
	root, rest, dotted := strings.Cut(text, ".")
	fields, known := roots[root]
	switch {
	case !known:
		return path{}, fmt.Errorf("source %q starts with none of key, value, window, header, topic, partition, offset, timestamp", text)
	case !fields && dotted:
		return path{}, fmt.Errorf("source %q: %s has no fields", text, root)
	case root == "window" && rest != "start":
		return path{}, fmt.Errorf("source %q: a window has one field, window.start", text)
	case root == "header" && rest == "":
		return path{}, fmt.Errorf("source %q: want header.NAME", text)
	case dotted && rest == "":
		return path{}, fmt.Errorf("source %q ends with a dot", text)
	}
	p := path{root: root}
	switch {
	case root == "header":
		p.fields = []string{rest} // a header's name may hold dots
	case dotted:
		p.fields = strings.Split(rest, ".")
	}
	return p, nil
}

// fromValue reports whether the path reads the record's value, which a deletion
// does not have.
func (p path) fromValue() bool { return p.root == "value" }

// eval returns what the path names in r; nil for what is not there. An error
// means that r has another shape than the path expects.
func (p path) eval(r *connectors.Record) (any, error) {
	switch p.root {
	case "topic":
		return r.TP.Topic, nil
	case "partition":
		return int64(r.TP.Partition), nil
	case "offset":
		return r.Offset, nil
	case "timestamp":
		return r.Time, nil
	case "header":
		for i := len(r.Headers) - 1; i >= 0; i-- { // the last of a name counts
			if r.Headers[i].Key == p.fields[0] {
				return r.Headers[i].Value, nil
			}
		}
		return nil, nil
	case "window":
		w, ok := r.Key.(connectors.WindowedKey)
		if !ok {
			return nil, fmt.Errorf("window.start: the key is a %T; decode it as windowed(...)", r.Key)
		}
		return w.Start, nil
	case "key":
		k := r.Key
		if w, ok := k.(connectors.WindowedKey); ok {
			k = w.Key
		}
		return dig("key", k, p.fields)
	}
	return dig("value", r.Value, p.fields)
}

// dig follows fields into nested JSON objects.
func dig(root string, v any, fields []string) (any, error) {
	for i, f := range fields {
		if v == nil {
			return nil, nil
		}
		object, ok := v.(map[string]any)
		if !ok {
			at := strings.Join(append([]string{root}, fields[:i]...), ".")
			return nil, fmt.Errorf("%s is a %T, it has no field %q", at, v, f)
		}
		v = object[f]
	}
	return v, nil
}

// convert makes a value of the column's type, or says why it cannot: a value is
// never rounded, cut or turned into text of another meaning.
func convert(v any, t Type) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch t {
	case Integer:
		return toInteger(v)
	case Real:
		return toReal(v)
	case Blob:
		switch v := v.(type) {
		case []byte:
			return v, nil
		case string:
			return []byte(v), nil
		}
		return nil, mismatch(v, t)
	}
	return toText(v)
}

func mismatch(v any, t Type) error {
	return fmt.Errorf("a %T does not fit a column of type %s", v, t)
}

func toInteger(v any) (any, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case time.Time:
		return v.UnixMilli(), nil
	case json.Number:
		n, err := strconv.ParseInt(string(v), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is not a whole number of 64 bits", v)
		}
		return n, nil
	}
	return nil, mismatch(v, Integer)
}

func toReal(v any) (any, error) {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) { // SQLite would store NULL
			return nil, fmt.Errorf("not a number, which SQLite cannot store")
		}
		return v, nil
	case int64:
		if back := float64(v); back < 1<<63 && int64(back) == v {
			return back, nil
		}
		return nil, fmt.Errorf("%d is not exact as a real", v)
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("%s is outside the range of a real", v)
		}
		return f, nil
	}
	return nil, mismatch(v, Real)
}

func toText(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return string(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case bool:
		return strconv.FormatBool(v), nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	case []byte:
		if !utf8.Valid(v) {
			return nil, fmt.Errorf("%d bytes that are not UTF-8 do not fit a column of type TEXT", len(v))
		}
		return string(v), nil
	case map[string]any, []any:
		text, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("as JSON text: %w", err)
		}
		return string(text), nil
	}
	return nil, mismatch(v, Text)
}
