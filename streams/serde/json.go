package serde

import (
	"encoding"
	"encoding/json/v2"
	"fmt"
	"reflect"
)

// JSON is the serde that writes T as JSON (encoding/json/v2), the members of
// maps in sorted order so that equal values have equal bytes.
func JSON[T any]() Serde[T] { return jsonSerde[T]{} }

type jsonSerde[T any] struct{}

func (jsonSerde[T]) Append(dst []byte, v T) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return dst, err
	}
	return append(dst, b...), nil
}

func (jsonSerde[T]) Decode(b []byte) (T, error) {
	var v T
	err := json.Unmarshal(b, &v)
	return v, err
}

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonMarshalerTo = reflect.TypeFor[json.MarshalerTo]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	jsonUnmarshFrom = reflect.TypeFor[json.UnmarshalerFrom]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// speaksJSON reports a type with a JSON or text form of its own.
func speaksJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	out := p.Implements(jsonMarshaler) || p.Implements(jsonMarshalerTo) || p.Implements(textMarshaler)
	in := p.Implements(jsonUnmarshaler) || p.Implements(jsonUnmarshFrom) || p.Implements(textUnmarshaler)
	return out && in
}

// checkJSON finds what JSON would refuse, or silently lose, in a type.
func checkJSON(t reflect.Type) error { return walkJSON(t, t.String(), map[reflect.Type]bool{}) }

func walkJSON(t reflect.Type, path string, seen map[reflect.Type]bool) error {
	if seen[t] || speaksJSON(t) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Errorf("%s is a %s, which JSON cannot say", path, t.Kind())
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("%s is an interface with methods, which JSON cannot read back", path)
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return walkJSON(t.Elem(), path+" element", seen)
	case reflect.Map:
		return walkJSON(t.Elem(), path+" element", seen)
	case reflect.Struct:
		return walkStruct(t, path, seen)
	}
	return nil
}

func walkStruct(t reflect.Type, path string, seen map[reflect.Type]bool) error {
	written := 0
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("json") == "-" || (!f.IsExported() && !f.Anonymous) {
			continue
		}
		written++
		if err := walkJSON(f.Type, path+"."+f.Name, seen); err != nil {
			return err
		}
	}
	if written == 0 && t.NumField() > 0 {
		return fmt.Errorf("%s has no exported field: JSON would write it as {}", path)
	}
	return nil
}
