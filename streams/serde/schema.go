package serde

import (
	"context"
	"errors"
)

// ErrUnavailable is wrapped by the error of a serde that cannot say now what
// it could say later: the registry that knows the schema does not answer. The
// bytes may be good, so such a record should be tried again, or end the job; to
// skip it, or to send it to a dead letter topic, would lose it.
var ErrUnavailable = errors.New("not available now")

// Kind is the language of a schema, by the name that schema registries use.
type Kind string

// The kinds.
const (
	Avro       Kind = "AVRO"
	Protobuf   Kind = "PROTOBUF"
	JSONSchema Kind = "JSON"
)

// Schema describes the bytes of values.
type Schema struct {
	Kind Kind
	Name string // full name of the type, if the schema gives it one
	Text string
	Uses []Reference // what the text refers to
}

// Reference is a schema that another one uses, by the name that it has there:
// a full name in Avro, the path of an import in Protobuf, a URL in JSON Schema.
type Reference struct {
	Name   string
	Schema Schema
}

// Described is a serde whose bytes follow a schema. Package registry makes of it
// one that announces its schema with each record, and reads what others have
// written by other versions of it.
type Described[T any] interface {
	Serde[T]
	// Schema is the schema that Append writes by.
	Schema() (Schema, error)
	// WriterBy returns a function like Append that writes by another version of
	// the schema, or by the same.
	WriterBy(Schema) (func(dst []byte, v T) ([]byte, error), error)
	// ReaderOf returns a function like Decode for bytes that were written by this
	// version of the schema. The error says why T can not hold what it describes.
	ReaderOf(written Schema) (func(b []byte) (T, error), error)
}

// Checked is a serde that may have been made with a mistake, such as a schema that
// does not parse. A topology asks when it is built, and reports it with all
// other mistakes.
type Checked interface{ Check() error }

// Part is the half of a record that a serde is for.
type Part int

// The parts.
const (
	Value Part = iota
	Key
)

// String is "value" or "key".
func (p Part) String() string {
	if p == Key {
		return "key"
	}
	return "value"
}

// Topical is a serde that depends on the topic. A topology asks for that of each
// topic which it reads, writes or keeps, its own included.
type Topical[T any] interface {
	Serde[T]
	ForTopic(topic string, part Part) Serde[T]
}

// Prepared is a serde with something to do before its first Append, which may
// fail: Run does it before it takes any work, and does not start if it fails.
type Prepared interface{ Prepare(context.Context) error }
