package registry

import (
	"fmt"

	"github.com/millrace/millrace/streams/serde"
)

// Opt is an option of a serde with a registry.
type Opt func(*options)

type options struct {
	naming              Naming
	subject             string
	register, useLatest bool
	normalize           bool
}

// Naming makes the name of a subject of a topic, the half of the record, and the
// name of the type in its schema.
type Naming func(topic string, part serde.Part, record string) (string, error)

// ByTopic is the default: "orders-value" for the values of topic orders.
func ByTopic(topic string, part serde.Part, _ string) (string, error) {
	if topic == "" {
		return "", fmt.Errorf("the subject is named after the topic, and there is none here: name it with Subject or SubjectBy")
	}
	return topic + "-" + part.String(), nil
}

// ByRecord is the name of the type, whatever the topic: "shop.Order". For topics
// with records of several types.
func ByRecord(_ string, _ serde.Part, record string) (string, error) {
	if record == "" {
		return "", fmt.Errorf("the subject is named after the record, and its schema has no name")
	}
	return record, nil
}

// ByTopicAndRecord is "orders-shop.Order".
func ByTopicAndRecord(topic string, part serde.Part, record string) (string, error) {
	if _, err := ByTopic(topic, part, record); err != nil {
		return "", err
	}
	name, err := ByRecord(topic, part, record)
	return topic + "-" + name, err
}

// SubjectBy names subjects by a rule: ByTopic, ByRecord, ByTopicAndRecord, or one
// of your own.
func SubjectBy(n Naming) Opt { return func(o *options) { o.naming = n } }

// Subject is the name of the subject, for all topics.
func Subject(name string) Opt { return func(o *options) { o.subject = name } }

// AutoRegister adds the schema to its subject when it is not there. It is
// convenient where topics come and go, and a way for a job that was started by
// mistake to change what others rely on.
func AutoRegister() Opt { return func(o *options) { o.register = true } }

// UseLatest writes by the latest schema of the subject, as it is when the job
// starts, in place of the type's own.
func UseLatest() Opt { return func(o *options) { o.useLatest = true } }

// Normalize lets the registry compare schemas by meaning, not by the order of
// what is written in them.
func Normalize() Opt { return func(o *options) { o.normalize = true } }

func collect(opts []Opt) (options, error) {
	o := options{naming: ByTopic}
	for _, opt := range opts {
		opt(&o)
	}
	switch {
	case o.register && o.useLatest:
		return o, fmt.Errorf("registry: AutoRegister and UseLatest exclude each other")
	case o.naming == nil:
		return o, fmt.Errorf("registry: SubjectBy needs a rule")
	}
	return o, nil
}

func (o options) subjectOf(topic string, part serde.Part, record string) (string, error) {
	if o.subject != "" {
		return o.subject, nil
	}
	return o.naming(topic, part, record)
}
