package protobuf

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace/millrace/streams/serde"
)

func init() { serde.AddFinder(find) }

var messageType = reflect.TypeFor[proto.Message]()

// find answers for the pointers that are messages.
func find(t reflect.Type) (serde.Found, bool, error) {
	switch {
	case t.Kind() == reflect.Pointer && t.Implements(messageType):
		return serde.Found{
			Append: func(dst []byte, v any) ([]byte, error) { return appendMessage(dst, v.(proto.Message)) },
			Decode: func(b []byte) (any, error) {
				m := reflect.New(t.Elem()).Interface().(proto.Message)
				return m, decodeMessage(b, m)
			},
		}, true, nil
	case t.Kind() == reflect.Struct && reflect.PointerTo(t).Implements(messageType):
		return serde.Found{}, false, fmt.Errorf("%w for type %s: Protobuf messages are pointers: use *%s", serde.ErrNoSerde, t, t)
	}
	return serde.Found{}, false, nil
}

func appendMessage(dst []byte, m proto.Message) ([]byte, error) {
	out, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, m)
	if err != nil {
		return dst, fmt.Errorf("protobuf: %w", err)
	}
	return out, nil
}

func decodeMessage(b []byte, m proto.Message) error {
	if err := proto.Unmarshal(b, m); err != nil {
		return fmt.Errorf("protobuf: %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return nil
}

// Serde is the serde of a message type; it implements serde.Described.
type Serde[T proto.Message] struct {
	message protoreflect.MessageType
	source  string
	accept  []string
	err     error
}

// Opt is an option of New.
type Opt func(*options)

type options struct {
	source string
	accept []string
}

// Source is the text of the message's file, to look it up or register it in that
// form.
func Source(text string) Opt { return func(o *options) { o.source = text } }

// Accept names messages, such as "old.Order", that are read as if they were T's.
func Accept(names ...string) Opt { return func(o *options) { o.accept = append(o.accept, names...) } }

// New is the serde of the message type T, a pointer such as *shop.Order.
func New[T proto.Message](opts ...Opt) *Serde[T] {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	s := &Serde[T]{source: o.source, accept: o.accept}
	s.message, s.err = typeOf[T]()
	if s.err == nil {
		s.accept = append(s.accept, string(s.message.Descriptor().FullName()))
	}
	return s
}

// typeOf asks a nil message for its type, which generated ones know.
func typeOf[T proto.Message]() (t protoreflect.MessageType, err error) {
	defer func() {
		if recover() != nil {
			t, err = nil, fmt.Errorf("protobuf: %s is not a generated message type", reflect.TypeFor[T]())
		}
	}()
	var none T
	if t = none.ProtoReflect().Type(); t == nil {
		return nil, errors.New("no type")
	}
	return t, nil
}

// Check implements serde.Checked.
func (s *Serde[T]) Check() error { return s.err }

// Append implements serde.Serde.
func (s *Serde[T]) Append(dst []byte, v T) ([]byte, error) {
	if s.err != nil {
		return dst, s.err
	}
	return appendMessage(dst, v)
}

// Decode implements serde.Serde.
func (s *Serde[T]) Decode(b []byte) (T, error) {
	var none T
	if s.err != nil {
		return none, s.err
	}
	m := s.message.New().Interface()
	if err := decodeMessage(b, m); err != nil {
		return none, err
	}
	return m.(T), nil
}

// Schema implements serde.Described.
func (s *Serde[T]) Schema() (serde.Schema, error) {
	if s.err != nil {
		return serde.Schema{}, s.err
	}
	d := s.message.Descriptor()
	file, err := fileSchema(d.ParentFile())
	file.Name = string(d.FullName())
	if s.source != "" {
		file.Text = s.source
	}
	return file, err
}

// WriterBy implements serde.Described: the bytes are the same by any version, but
// the message's place in the file may not be.
func (s *Serde[T]) WriterBy(by serde.Schema) (func(dst []byte, v T) ([]byte, error), error) {
	if s.err != nil {
		return nil, s.err
	}
	messages, err := outline(by.Text)
	if err != nil {
		return nil, err
	}
	name := string(s.message.Descriptor().FullName())
	path := messages.path(name)
	if path == nil {
		return nil, fmt.Errorf("protobuf: there is no message %s in the schema", name)
	}
	prefix := appendPath(nil, path)
	return func(dst []byte, v T) ([]byte, error) { return s.Append(append(dst, prefix...), v) }, nil
}

// ReaderOf implements serde.Described.
func (s *Serde[T]) ReaderOf(written serde.Schema) (func(b []byte) (T, error), error) {
	if s.err != nil {
		return nil, s.err
	}
	messages, err := outline(written.Text)
	if err != nil {
		return nil, err
	}
	return func(b []byte) (T, error) {
		var none T
		at, rest, err := messages.follow(b)
		if err != nil {
			return none, err
		}
		if !slices.Contains(s.accept, at.name) {
			return none, fmt.Errorf("protobuf: the record is a %s, not a %s", at.name, s.message.Descriptor().FullName())
		}
		return s.Decode(rest)
	}, nil
}
