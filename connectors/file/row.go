package file

import (
	"encoding/json"
	"fmt"
	"time"
)

// Row is one record of a file, as functions of [Config] see it. It is valid
// during the call.
type Row struct {
	Number int64  // from 0
	Value  []byte // the JSON value, or the CSV line as a JSON object
	fields map[string]json.RawMessage
}

// Field returns a field of the row's object as text: a string without its
// quotes, any other value as it is written. ok is false when there is no such
// field, when it is null, and when the row is no object.
func (r Row) Field(name string) (text string, ok bool) {
	raw, ok := r.fields[name]
	if !ok || string(raw) == "null" {
		return "", false
	}
	if len(raw) > 0 && raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", false // not reached: the row was parsed before
		}
		return text, true
	}
	return string(raw), true
}

// TimeFunc makes the time of a record.
type TimeFunc func(Row) (time.Time, error)

// Field returns a Key that takes a field's text. A row without it is an error:
// a missing key would move the record to another partition.
func Field(name string) func(Row) ([]byte, error) {
	return func(r Row) ([]byte, error) {
		text, ok := r.Field(name)
		if !ok {
			return nil, fmt.Errorf("no field %q for the key", name)
		}
		return []byte(text), nil
	}
}

// TimeField returns a Time that reads a field with a layout of package time, in
// the given location (nil = UTC).
func TimeField(name, layout string, in *time.Location) TimeFunc {
	if in == nil {
		in = time.UTC
	}
	return func(r Row) (time.Time, error) {
		text, ok := r.Field(name)
		if !ok {
			return time.Time{}, fmt.Errorf("no field %q for the time", name)
		}
		at, err := time.ParseInLocation(layout, text, in)
		if err != nil {
			return time.Time{}, fmt.Errorf("field %q: %w", name, err)
		}
		return at, nil
	}
}
