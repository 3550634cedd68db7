// Package schema decodes the records that Apache Kafka keeps in its own topics and files by a table of their layouts: groups,
// transactions, share state, cluster metadata, the quorum. One small interpreter stands for some ninety generated readers, shows
// every field under Kafka's own name, and can show a field that no one here has use for, which is what a dump is for. Code that
// acts upon a record (the coordinators, the metadata store) does not use it: it has its own reader of the types that it knows.
//
// The table, records.jsonl, holds the layouts of Apache Kafka 4.4.0: one line for a type, with a list of fields for each version.
// A field's type is the name of a primitive, a list of fields (a struct), an array, or a struct that may be null; a struct of a
// flexible version ends in the field _tagged, which maps tags to fields.
//
// Any bytes may come in. The answer is an error, never a panic, and no more memory than a small multiple of the input: an array's
// claimed length is believed only as far as bytes are left.
package schema
