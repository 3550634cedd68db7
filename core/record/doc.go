// Package record is Kafka's record batch of format 2: the unit in which producers send, the log stores and consumers fetch.
// Between the socket and the file a batch stays the bytes it came as. This package looks at those bytes in place, checks
// them, patches the few fields that the leader owns, and walks or builds the records for those who need them.
//
// # The bytes
//
// All numbers are big-endian. The checksum covers everything from the attributes to the end, so that base offset, length and
// leader epoch can be written without touching it.
//
//	 0        8       12      16    17        21      23            27
//	 +--------+--------+-------+-----+---------+-------+-------------+
//	 | base   | length | leader|magic| CRC-32C | attri-| last offset |
//	 | offset |        | epoch |  2  |         | butes | delta       |
//	 +--------+--------+-------+-----+---------+-------+-------------+
//	 27          35          43         51         53         57      61
//	 +-----------+-----------+----------+----------+----------+-------+-----------
//	 | base      | max       | producer | producer | base     | count | records …
//	 | timestamp | timestamp | id       | epoch    | sequence |       |
//	 +-----------+-----------+----------+----------+----------+-------+-----------
//
//	attributes   bits 0–2 codec   3 log append time   4 transactional   5 control   6 delete horizon
//
// length counts what follows it: a batch has length+12 bytes. The records stand one behind the other, or as one block that a
// codec made of them. A record, with zigzag varints:
//
//	length | attributes (one byte, 0) | timestamp delta | offset delta |
//	key length, -1 for null | key | value length, -1 for null | value |
//	number of headers | for each: name length | name | value length, -1 for null | value
//
// # The ways in and out
//
//   - A leader takes the records of a Produce request through [Single] (is it one batch?) and [Batch.Validate] (is it sound,
//     and what the topic wants?), corrects a header that does not tell the truth with [Batch.Settle] or
//     [Batch.SetLogAppendTime], and places it with [Batch.SetBaseOffset] and [Batch.SetLeaderEpoch].
//   - A log that is scanned or replayed goes through [Next] or [Batches], and [Batch.CheckCRC].
//   - A consumer, a coordinator or a compactor walks the records with [Batch.Reader] or [Batch.Records].
//   - Who writes uses a [Builder]; the end of a transaction is [BuildControl] and [Batch.Marker].
//
// # Invariants
//
//   - Nothing here keeps or copies a caller's buffer. Slices that come out alias the batch or the [Scratch].
//   - Any bytes at all may come in: the answer is an error, never a panic, and never more memory than a stated bound. What a
//     header or a codec claims is believed only as far as bytes are there to show for it.
//   - Reading, validating and building allocate nothing per record, and with a Scratch or Builder that is used again nothing
//     per batch.
//   - A batch that Validate let pass is read to its end by Reader, record by record, with offsets that rise by one.
//
// The package is pure: no clock, no goroutine, no file. Formats 0 and 1, which brokers stopped taking in Kafka 4.0, are
// recognised only to be refused. Sources: KIP-98 (format 2), KIP-534 (delete horizon), KIP-110 (zstd), and the bytes that
// Apache Kafka 4.4.0 itself writes, which the tests hold this package against.
package record
