// Package avro writes values as Avro's binary encoding: the values of the fields,
// one after the other, without names.
//
//	app.RegisterSerde(avro.New[Order](`{"type": "record", "name": "Order", "namespace": "shop", "fields": [
//		{"name": "user", "type": "string"},
//		{"name": "cents", "type": "long"}]}`))
//
// The fields of a struct are those with a tag avro:"name"; an optional one is a
// pointer whose schema is ["null", …]. Types are those of the library
// github.com/hamba/avro/v2, which also generates structs from schemas.
//
// # Which schema a record was written by
//
// Bytes say nothing about their schema, and Avro can not be read without the one
// it was written by. There are three ways to know it:
//
//   - [New]: all records are of one schema, for ever. Whoever changes it begins a
//     new topic.
//   - [New] with [Fingerprint]: each record begins with Avro's single-object header,
//     two bytes and the fingerprint of its schema; [Since] names the older ones.
//     It needs no service.
//   - package registry around [New]: each record has a number, and a registry
//     knows the schema.
//
// A record of another version is read by Avro's rules of resolution: fields that
// are new here take their default, fields that are gone are skipped, numbers are
// widened, names may be aliases. What these rules do not allow is an error that
// says which field it is about.
//
// # Bytes
//
// Equal values have equal bytes unless they contain maps of more than one entry,
// whose order is chance: a schema with maps is not for keys.
package avro
