package record

import (
	"encoding/binary"
	"fmt"
)

// Rewriter makes what compaction leaves of a batch. Offsets, sequences and the producer of a batch stay, whatever records are
// removed: Keep chooses the records, Batch makes the batch of those, and Empty the header alone. The bytes are those that
// Kafka's cleaner writes, as far as the codec allows. Memory is used again from batch to batch; what Batch and Empty return is
// valid until the next call. The zero value is ready. Not safe for concurrent use.
type Rewriter struct {
	scratch Scratch
	payload []byte // of the last Keep's batch, decompressed
	kept    []kept
	raw     []byte
	packed  []byte
}

// kept is a record that stays: what follows its offset delta is copied.
type kept struct {
	from, to    int
	timestamp   int64
	offsetDelta int32
}

// Keep reads the records of a batch and remembers those for which keep holds; it returns how many.
func (w *Rewriter) Keep(b Batch, keep func(*Record) bool) (int, error) {
	w.kept = w.kept[:0]
	r, err := b.Reader(&w.scratch)
	if err != nil {
		return 0, err
	}
	w.payload = r.p
	for at := r.i; r.Next(); at = r.i {
		if !keep(r.Record()) {
			continue
		}
		_, i := varint32(r.p, at) // all this has been scanned already
		_, i = varint64(r.p, i+1)
		_, i = varint32(r.p, i)
		w.kept = append(w.kept, kept{i, r.i, r.Record().Timestamp, r.OffsetDelta()})
	}
	return len(w.kept), r.Err()
}

// Batch makes the batch of the records that the last Keep, of the same batch, chose; there must be one. With a delete horizon
// (not [NoTimestamp]) the batch carries it as its base timestamp (KIP-534).
func (w *Rewriter) Batch(b Batch, horizonMs int64) (Batch, error) {
	if len(w.kept) == 0 {
		return nil, ErrEmpty
	}
	attr := b.Attributes() & (codecMask | logAppendTimeBit | transactionalBit | controlBit)
	base, greatest := w.kept[0].timestamp, int64(NoTimestamp)
	if horizonMs != NoTimestamp {
		attr |= deleteHorizonBit
		base = horizonMs
	}
	raw := append(w.raw[:0], b[:HeaderSize]...)
	for _, k := range w.kept {
		delta, rest := k.timestamp-base, w.payload[k.from:k.to]
		raw = appendVarint(raw, int64(1+varintSize(delta)+varintSize(int64(k.offsetDelta))+len(rest)))
		raw = append(raw, 0) // attributes
		raw = appendVarint(raw, delta)
		raw = appendVarint(raw, int64(k.offsetDelta))
		raw = append(raw, rest...)
		greatest = max(greatest, k.timestamp)
	}
	w.raw = raw
	out := raw
	if c := attr.Codec(); c != None {
		packed, err := compress(c, 0, append(w.packed[:0], raw[:HeaderSize]...), raw[HeaderSize:])
		if w.packed = packed; err != nil {
			return nil, err
		}
		out = packed
	}
	if len(out) > maxBatchSize {
		return nil, fmt.Errorf("record: the rewritten batch has %d bytes, the most is %d", len(out), maxBatchSize)
	}
	return finish(Batch(out[:len(out):len(out)]), attr, base, greatest, int32(len(w.kept))), nil
}

// Empty makes the header of a batch all of whose records are gone. It still tells which offsets and sequences they had.
func (w *Rewriter) Empty(b Batch) Batch {
	w.raw = append(w.raw[:0], b[:HeaderSize]...)
	attr := b.Attributes() & (logAppendTimeBit | transactionalBit | controlBit)
	return finish(Batch(w.raw[:HeaderSize:HeaderSize]), attr, NoTimestamp, b.MaxTimestamp(), 0)
}

// finish writes the fields that follow from the records, and the checksum.
func finish(b Batch, attr Attributes, base, greatest int64, count int32) Batch {
	binary.BigEndian.PutUint32(b[atLength:], uint32(len(b)-overhead))
	binary.BigEndian.PutUint16(b[atAttributes:], uint16(attr))
	binary.BigEndian.PutUint64(b[atBaseTimestamp:], uint64(base))
	binary.BigEndian.PutUint64(b[atMaxTimestamp:], uint64(greatest))
	binary.BigEndian.PutUint32(b[atCount:], uint32(count))
	b.SetCRC()
	return b
}

// Release lets buffers go that one large batch has grown.
func (w *Rewriter) Release() {
	w.scratch.Release()
	w.payload = nil
	if cap(w.raw) > keepDecompressed {
		w.raw = nil
	}
	if cap(w.packed) > keepDecompressed {
		w.packed = nil
	}
}
