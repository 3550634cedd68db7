// Package protobuf writes Protobuf messages. Who imports it has their serdes
// found: a stream of *shop.Order needs nothing else.
//
//	import _ "github.com/millrace/millrace/streams/serde/protobuf"
//
//	app.Stream[string, *shop.Order]("orders")
//
// A nil message is null. Equal messages have equal bytes within one version of
// the library, which sorts maps; that is enough for values, but the format does
// not promise it for ever: keys should be of basic types.
//
// Fields are known by their numbers, so new types read old records and old types
// new ones, as long as no number is used again for another type; fields that a type
// does not know are kept and written again.
//
// # With a registry
//
// [New] is the serde that package registry takes:
//
//	app.RegisterSerde(registry.Of(client, protobuf.New[*shop.Order]()))
//
// The schema is the file of the message, sent as its descriptor, with the files
// that it imports as references under their paths. A registry that was filled from
// sources by someone else may hold a text that differs in nothing but its form:
// registry.UseLatest, or the text itself as [Source], finds that one.
//
// Behind the schema's number a record names the message in its file, by a path of
// indexes. A record of another message is an error; [Accept] names those that are
// the same by another name.
package protobuf
