// Package jsonschema writes values as JSON and checks each against a schema, on
// its way out and on its way in.
//
//	app.RegisterSerde(jsonschema.New[Order](`{
//		"title": "Order", "type": "object", "required": ["user"],
//		"properties": {"user": {"type": "string"}, "cents": {"type": "integer", "minimum": 0}}}`))
//
// The bytes are those of serde.JSON. Drafts 4 to 2020-12 are understood, the last
// if the schema names none; nothing is ever fetched from the addresses in a
// schema: what it refers to is given with [Uses].
//
// A record is checked against this type's schema, not against the one that it was
// written by: what the program relies on holds. With package registry around it,
// records carry the number of their schema, and the registry decides which
// changes are allowed.
package jsonschema
