// Package serde turns typed keys and values into the bytes of a record and
// back.
//
// A stream knows its types, so it can find its serdes by itself: [For] answers
// with the serde of a Go type, in this order:
//
//  1. what was registered for exactly this type ([Register]);
//  2. the fixed encodings of Kafka's own clients, so that Java and Go programs
//     read each other's topics and partition alike: string (UTF-8), []byte,
//     int16, int32, int64, int (8 bytes), their unsigned forms, all big endian;
//     int8 and uint8 (one byte); float32 and float64 (IEEE 754, big endian);
//     bool (one byte); a UUID, that is a [16]byte type called UUID, as its
//     text of 36 characters; named types of these kinds like the kind itself;
//  3. time.Time: 8 bytes of seconds since 1970 and 4 bytes of nanoseconds, big
//     endian; the zone is not kept, so one instant has one encoding;
//  4. what a package with an encoding knows by itself, such as serde/protobuf
//     its messages, if the program imports it;
//  5. encoding.BinaryMarshaler (or BinaryAppender) with BinaryUnmarshaler;
//  6. JSON by encoding/json/v2, map keys sorted, for everything that JSON can
//     say without losing data. Types it cannot say are an error here, not
//     at the first record.
//
// A pointer type encodes what it points to.
//
// Packages below this one have encodings with schemas: serde/protobuf, serde/avro
// and serde/jsonschema, each alone or with a Schema Registry (serde/registry).
// What a program does not import it does not carry.
//
// Null is not a matter of serdes. A nil pointer, slice, map or interface is
// the null of Kafka and never reaches a serde, in either direction.
//
// The bytes of equal keys must be equal: they decide the partition and the
// row. Floats as keys follow their bits, so 0 and -0 differ.
package serde
