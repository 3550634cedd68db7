package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Rules are what a topic asks of a batch that a producer sends. The zero value asks only for what makes a batch sound.
type Rules struct {
	// MaxBytes is max.message.bytes: the size of the batch as sent. 0 is no limit.
	MaxBytes int
	// MaxDecompressed bounds the records once decompressed, in bytes; 0 is [DefaultMaxDecompressed].
	MaxDecompressed int
	// NoZstd refuses zstd, which Produce knows from version 7 on.
	NoZstd bool
	// CompactedTopic asks each record for a key.
	CompactedTopic bool
	// LogAppendTime says that the broker's time will replace the records' (message.timestamp.type), so theirs is not looked at.
	LogAppendTime bool
	// NowMs is the broker's clock in ms since 1970, BeforeMaxMs and AfterMaxMs how far a record's time may lie before and
	// after it (message.timestamp.before.max.ms, message.timestamp.after.max.ms). 0 is no limit, and so is
	// math.MaxInt64, Kafka's word for it. A record without a time (-1) is not looked at.
	NowMs, BeforeMaxMs, AfterMaxMs int64
	// AllowControl lets control batches in: for the broker's own.
	AllowControl bool
	// AllowBaseOffset lets a batch in that has an offset already. A producer's batch starts at 0.
	AllowBaseOffset bool
}

// Info is what Validate found out on its one pass over the records.
type Info struct {
	Count int32
	// MaxTimestamp is the greatest timestamp of the records, whatever the header says, and MaxTimestampDelta the offset
	// delta of the first record that has it; -1 and 0 if no record has a time. Both are of no use under
	// [Rules.LogAppendTime].
	MaxTimestamp      int64
	MaxTimestampDelta int32
	// DecompressedBytes is the size of the records, decompressed.
	DecompressedBytes int
	// Untrue says that the header does not tell the truth about the records, or has bits that a producer may not set; see
	// [Batch.Settle].
	Untrue bool
}

// Validate checks all that can be seen in the batch itself when it arrives from a producer, in the order in which Kafka
// does, and gives an [*Error] with Kafka's code. What needs the topic's state (sequences, epochs, open transactions) is
// package producer's.
//
// It differs from Kafka 4.4 in three places, each time to be clearer or safer:
//   - An unknown codec is UNSUPPORTED_COMPRESSION_TYPE, and a payload that its codec can't read is INVALID_RECORD; Kafka
//     says UNKNOWN_SERVER_ERROR for both. Neither answer is retried by a client.
//   - Offset deltas must be 0, 1, 2, … Kafka stores others as they came, so that two records share an offset, or an
//     acknowledged record is skipped by consumers, which never go back. INVALID_RECORD with the record's index.
//   - Records that decompress to more than a bound are MESSAGE_TOO_LARGE. Kafka has no bound.
//
// A nil scratch makes a new one. Uncompressed records cost no allocation; compressed ones none in the long run.
func (b Batch) Validate(r Rules, scratch *Scratch) (Info, error) {
	if scratch == nil {
		scratch = new(Scratch)
	}
	if e := b.checkHeader(&r); e != nil {
		return Info{}, e
	}
	limit := r.MaxDecompressed
	if limit <= 0 {
		limit = scratch.limit()
	}
	p, err := scratch.records(b, limit)
	if err != nil {
		return Info{}, undecodable(b.Attributes().Codec(), err)
	}
	info, e := b.checkRecords(&r, p)
	scratch.Release()
	if e != nil {
		return Info{}, e
	}
	return info, nil
}

// checkHeader is what Kafka checks before it looks at a record. It gives an untyped nil only through a typed one: callers
// compare with nil before they make an error of it.
func (b Batch) checkHeader(r *Rules) *Error {
	if len(b) < HeaderSize {
		return refuse(CodeCorruptMessage, "a batch of %d bytes is shorter than its header of %d", len(b), HeaderSize)
	}
	if n := int64(int32(binary.BigEndian.Uint32(b[atLength:]))) + overhead; n != int64(len(b)) {
		return refuse(CodeCorruptMessage, "the batch's length field says %d bytes, it has %d", n, len(b))
	}
	if b.Magic() != 2 {
		return refuse(CodeInvalidRecord, "the batch has format %d, only format 2 is taken", b.Magic())
	}
	attr := b.Attributes()
	if r.NoZstd && attr.Codec() == Zstd {
		return refuse(CodeUnsupportedCompressionType, "zstd needs Produce version 7 or later")
	}
	if !r.AllowBaseOffset && b.BaseOffset() != 0 {
		return refuse(CodeInvalidRecord, "the batch has base offset %d, a producer's starts at 0", b.BaseOffset())
	}
	if r.MaxBytes > 0 && len(b) > r.MaxBytes {
		return refuse(CodeMessageTooLarge, "the batch has %d bytes, max.message.bytes is %d", len(b), r.MaxBytes)
	}
	if got := b.checksum(); got != b.CRC() {
		return refuse(CodeCorruptMessage, "the batch's checksum is %#08x, its bytes have %#08x", b.CRC(), got)
	}
	last, count := int64(b.LastOffsetDelta()), int64(b.Count())
	if last < 0 || count <= 0 || last+1 != count {
		return refuse(CodeInvalidRecord, "the batch has %d records and last offset delta %d; the one must be the other and one more, and at least 1", count, last)
	}
	if attr.Control() && !r.AllowControl {
		return refuse(CodeInvalidRecord, "the batch is a control batch, which only a broker may write")
	}
	if b.HasProducer() && b.BaseSequence() < 0 && !attr.Control() {
		return refuse(CodeInvalidRecord, "the batch has producer id %d and base sequence %d, which is negative", b.ProducerID(), b.BaseSequence())
	}
	if !attr.Codec().valid() {
		return refuse(CodeUnsupportedCompressionType, "the batch has codec %d, which does not exist", int8(attr.Codec()))
	}
	return nil
}

// undecodable turns a codec's error into an answer.
func undecodable(c Codec, err error) *Error {
	if errors.Is(err, ErrTooLarge) {
		return &Error{Code: CodeMessageTooLarge, Reason: err.Error(), cause: err}
	}
	return &Error{Code: CodeInvalidRecord, Reason: fmt.Sprintf("the batch's records are not %s: %v", c, err), cause: err}
}

// window is the span of timestamps that a topic takes.
type window struct{ from, to int64 }

func (r *Rules) window() window {
	w := window{math.MinInt64, math.MaxInt64}
	if r.LogAppendTime {
		return w
	}
	if r.BeforeMaxMs > 0 && r.NowMs > math.MinInt64+r.BeforeMaxMs {
		w.from = r.NowMs - r.BeforeMaxMs
	}
	if r.AfterMaxMs > 0 && r.NowMs < math.MaxInt64-r.AfterMaxMs {
		w.to = r.NowMs + r.AfterMaxMs
	}
	return w
}

// checkRecords is the one pass over the records.
func (b Batch) checkRecords(r *Rules, p []byte) (Info, *Error) {
	var (
		rec   raw
		bad   *Error
		w     = r.window()
		base  = b.BaseTimestamp()
		count = b.Count()
		info  = Info{Count: count, MaxTimestamp: NoTimestamp, DecompressedBytes: len(p)}
		at    = 0
	)
	for i := range count {
		next, reason := scan(p, at, &rec)
		if reason != "" {
			return info, refuseRecord(nil, CodeInvalidRecord, i, reason)
		}
		at = next
		ts := base + rec.timeDelta
		if ts > info.MaxTimestamp {
			info.MaxTimestamp, info.MaxTimestampDelta = ts, i
		}
		if rec.offsetDelta != i || (rec.key == nil && r.CompactedTopic) || ts < w.from || ts > w.to ||
			(ts > base) != (rec.timeDelta > 0) {
			bad = b.judge(r, w, bad, &rec, i)
		}
	}
	if at != len(p) {
		return info, refuse(CodeInvalidRecord, "%d bytes are left behind the last of the batch's %d records", len(p)-at, count)
	}
	if bad != nil {
		return info, bad
	}
	a := b.Attributes()
	info.Untrue = info.MaxTimestamp != b.MaxTimestamp() || a != a.settled()
	return info, nil
}

// judge says what is wrong with a record that the fast comparison of checkRecords picked out, if anything is: a record
// without a time is within every window.
func (b Batch) judge(r *Rules, w window, bad *Error, rec *raw, i int32) *Error {
	base := b.BaseTimestamp()
	ts := base + rec.timeDelta
	switch {
	case rec.offsetDelta != i:
		return refuseRecord(bad, CodeInvalidRecord, i, fmt.Sprintf("its offset delta is %d, must be %d", rec.offsetDelta, i))
	case rec.key == nil && r.CompactedTopic:
		return refuseRecord(bad, CodeInvalidRecord, i, "it has no key, which a compacted topic needs")
	case r.LogAppendTime:
		return bad
	case (ts > base) != (rec.timeDelta > 0):
		return refuseRecord(bad, CodeInvalidTimestamp, i, fmt.Sprintf("its timestamp delta %d overflows from %d", rec.timeDelta, base))
	case ts != NoTimestamp && (ts < w.from || ts > w.to):
		return refuseRecord(bad, CodeInvalidTimestamp, i, fmt.Sprintf("its timestamp %d is not within %d and %d", ts, w.from, w.to))
	}
	return bad
}

// refuseRecord adds a record to a refusal. A wrong timestamp decides the code of the whole, as in Kafka.
func refuseRecord(e *Error, code int16, index int32, message string) *Error {
	if e == nil {
		e = &Error{Code: code}
	}
	if code == CodeInvalidTimestamp {
		e.Code = code
	}
	e.Reason = "one or more records of the batch are invalid"
	if e.Code == CodeInvalidTimestamp {
		e.Reason = "one or more records of the batch have a timestamp that the topic does not take"
	}
	e.Failed++
	if len(e.Records) < MaxRecordErrors {
		e.Records = append(e.Records, RecordError{Index: index, Message: message})
	}
	return e
}
