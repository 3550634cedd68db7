// Package file reads files into topics, exactly once: a JSON array, JSON values
// one after the other (JSON lines among them) or CSV with a header line, plain
// or gzipped.
//
// Every path is a part of its own with a position of its own, which is the
// number of records read and the identity of the file: its size and a hash of its
// first kilobyte. A file that has changed since the position was stored is an
// error, as record numbers of one file mean nothing in another. The position is
// written to the log in the transaction of the records it stands for, so a
// process that is killed at any point goes on with the record after the last one
// that is in the log.
//
// A JSON value is sent as its bytes stand in the file. A CSV line becomes a JSON
// object of strings, in the order of the header. Key and time of a record come
// from functions, [Field] and [TimeField] being the usual ones.
package file
