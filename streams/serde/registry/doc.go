// Package registry lets a serde announce its schema with each record, and read
// records that others have written by other versions of it. It speaks to a Schema
// Registry: Confluent's, or any with its HTTP interface, and its records are
// those of Confluent's serializers for Java.
//
//	client, err := registry.Open(registry.Config{URLs: []string{"http://registry:8081"}})
//	…
//	app.RegisterSerde(registry.Of(client, avro.New[Order](orderSchema), registry.AutoRegister()))
//
// # On the wire
//
// A record is a zero byte, the schema's number as four bytes, big endian, and
// what the format writes; for Protobuf that begins with the path of the message
// inside of its file.
//
// # Writing
//
// A schema has its number under a subject. The subject is named after the topic
// and the half of the record, "orders-value", so one serde has a number for each
// topic that it writes to: the topology binds it to them. Topics of the
// application's own count too, as its rows must be readable when the type has
// changed: the changelog shop-spend-changelog has the subject
// shop-spend-changelog-value. [SubjectBy] and [Subject] name subjects otherwise.
//
// The number is looked up before a job takes any work: a schema that is not
// there, or a registry that is not, is an error of the start. [AutoRegister]
// makes what is missing; where the registry refuses, the error wraps
// [ErrIncompatible], with the subject and the reason. [UseLatest] writes by the
// subject's latest schema, whatever the type's own is.
//
// # Reading
//
// The number in a record leads to the schema that it was written by. It is asked
// for once and then known; a record costs the look-up in a map. A number that the
// registry does not know wraps [ErrUnknownSchema], and is asked for again after a
// while. If the registry does not answer the error wraps serde.ErrUnavailable:
// such a record is not bad, so a handler should try again or fail, see the example.
//
// # Keys
//
// The number is part of the bytes, and bytes decide where a key belongs: a key
// written by two versions of a schema is two keys. Keys that aggregate or join
// should be of basic types.
package registry
