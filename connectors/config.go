package connectors

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is a connector's settings as they come from a file, a command line or
// an HTTP request.
type Config map[string]string

// Kind is the type of a setting.
type Kind int

// The kinds of settings.
const (
	KindString Kind = iota
	KindInt
	KindBool
	KindDuration // as time.ParseDuration reads it
	KindList     // separated by commas, spaces around each item dropped
	KindSecret   // a string that is never printed
)

var kindNames = [...]string{"string", "int", "bool", "duration", "list", "secret"}

// String returns the name used in documentation.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

// Field describes one setting.
type Field struct {
	Name     string
	Kind     Kind
	Doc      string // one sentence for the user
	Default  string // in the setting's own notation; "" = the type's zero value
	Required bool
	OneOf    []string // allowed values of a string; nil = any
	Min, Max int64    // limits of an int; both 0 = none
}

// Fields is a connector's typed configuration.
type Fields []Field

// Values are settings that have been checked against their Fields.
type Values struct {
	values map[string]any
}

// Parse checks c against the fields and returns the typed values, defaults
// filled in. The error names every setting that is wrong, its limit, and every
// name that no field has; it matches [ErrConfig].
func (fs Fields) Parse(c Config) (Values, error) {
	out := Values{values: make(map[string]any, len(fs))}
	var errs []error
	known := make(map[string]bool, len(fs))
	for _, f := range fs {
		known[f.Name] = true
		text, set := c[f.Name]
		if !set {
			text = f.Default
			if f.Required {
				errs = append(errs, fmt.Errorf("%s: required (%s)", f.Name, f.Doc))
				continue
			}
		}
		v, err := f.parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.Name, err))
			continue
		}
		out.values[f.Name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if !known[name] {
			errs = append(errs, fmt.Errorf("%s: no such setting", name))
		}
	}
	if len(errs) > 0 {
		return Values{}, fmt.Errorf("%w: %w", ErrConfig, errors.Join(errs...))
	}
	return out, nil
}

// parse reads one setting. Errors of a secret do not repeat its text.
func (f Field) parse(text string) (any, error) {
	switch f.Kind {
	case KindInt:
		if text == "" {
			return int64(0), nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		if (f.Min != 0 || f.Max != 0) && (n < f.Min || n > f.Max) {
			return nil, fmt.Errorf("%d is outside %d..%d", n, f.Min, f.Max)
		}
		return n, nil
	case KindBool:
		if text == "" {
			return false, nil
		}
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
		return b, nil
	case KindDuration:
		if text == "" {
			return time.Duration(0), nil
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a duration such as 250ms or 30s", text)
		}
		return d, nil
	case KindList:
		var list []string
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		return list, nil
	}
	if len(f.OneOf) > 0 && !slices.Contains(f.OneOf, text) {
		if f.Kind == KindSecret {
			return nil, errors.New("none of the allowed values")
		}
		return nil, fmt.Errorf("%q is none of %s", text, strings.Join(f.OneOf, ", "))
	}
	return text, nil
}

// String returns a string or secret setting; "" for an unknown name.
func (v Values) String(name string) string { return get[string](v, name) }

// Int returns an int setting.
func (v Values) Int(name string) int64 { return get[int64](v, name) }

// Bool returns a bool setting.
func (v Values) Bool(name string) bool { return get[bool](v, name) }

// Duration returns a duration setting.
func (v Values) Duration(name string) time.Duration { return get[time.Duration](v, name) }

// List returns a list setting.
func (v Values) List(name string) []string { return get[[]string](v, name) }

func get[T any](v Values, name string) T {
	t, _ := v.values[name].(T) // the zero value for a name that is no field of this kind
	return t
}
