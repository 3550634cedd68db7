package inspect

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/millrace/millrace/core/record"
)

// WalkOptions says what a walk shows. The zero value shows everything but records.
type WalkOptions struct {
	// Records shows the records of each batch too.
	Records bool
	// From and To bound the offsets of batches and records that are shown: From inclusive, To exclusive, 0 for no bound.
	From, To int64
	// Suffixes are those of the files to look at, such as ".log"; a file without one is named whole. None means all.
	Suffixes []string
	// Long shows long keys and values whole, where else their length and hash stand.
	Long bool
}

// Validate names the field that makes no sense.
func (o WalkOptions) Validate() error {
	switch {
	case o.From < 0:
		return fmt.Errorf("inspect: From is %d, must be at least 0", o.From)
	case o.To < 0 || o.To > 0 && o.To <= o.From:
		return fmt.Errorf("inspect: To is %d, must be above From, %d, or 0 for no bound", o.To, o.From)
	}
	return nil
}

// Walk calls fn for everything in the folder, in the order of the file names, until fn returns an error, which it returns. What is
// damaged is shown as far as it can be read, and ends neither the walk nor, except for a [GarbageItem], that of its file.
func (p *Partition) Walk(o WalkOptions, fn func(Item) error) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.To == 0 {
		o.To = math.MaxInt64
	}
	w := &walk{p: p, o: o, emit: fn}
	for _, name := range p.files {
		base, suffix, ok := parseName(name)
		if !ok {
			suffix = name
		}
		if len(o.Suffixes) > 0 && !slices.Contains(o.Suffixes, suffix) {
			continue
		}
		if err := w.file(name, suffix, base); err != nil {
			return err
		}
	}
	return nil
}

// walk is one call of Walk.
type walk struct {
	p       *Partition
	o       WalkOptions
	emit    func(Item) error
	scratch record.Scratch
}

func (w *walk) file(name, suffix string, base int64) error {
	switch suffix {
	case logSuffix, quorumSuffix:
		return w.batches(name)
	case indexSuffix, timeSuffix, txnSuffix:
		data, err := w.p.read(name)
		if err != nil {
			return err
		}
		return w.entries(name, suffix, base, data)
	case sumSuffix:
		data, err := w.p.read(name)
		if err != nil {
			return err
		}
		var index []byte
		if txns := fileName(base, txnSuffix); w.p.has(txns) {
			if index, err = w.p.read(txns); err != nil {
				return err
			}
		}
		return w.emit(readSum(name, data, index))
	case snapshotSuffix:
		data, err := w.p.read(name)
		if err != nil {
			return err
		}
		return w.emit(readSnapshot(name, data))
	case epochsName, metadataName, progressName, quorumName:
		data, err := w.p.read(name)
		if err != nil {
			return err
		}
		return w.emit(&TextItem{place{"text", name}, string(data)})
	}
	return nil
}

// batches walks a file of batches.
func (w *walk) batches(name string) error {
	s, err := openScan(w.p.fs, w.p.path(name))
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	defer s.close()
	for {
		b, pos, err := s.next()
		var m *misfit
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &m):
			return w.emit(&GarbageItem{place{"garbage", name}, m.position, m.rest, m.claimed, m.why})
		case err != nil:
			return fmt.Errorf("inspect: %s: %w", w.p.path(name), err)
		}
		if b.LastOffset() < w.o.From || b.BaseOffset() >= w.o.To {
			continue
		}
		if err := w.batch(name, b, pos); err != nil {
			return err
		}
	}
}

// batch shows one batch and its records. Those of a batch whose checksum is wrong are not shown: they may be anything.
func (w *walk) batch(name string, b record.Batch, pos int64) error {
	item := batchItem(name, b, pos)
	var r *record.Reader
	if w.o.Records && item.CRCOK {
		var err error
		if r, err = b.Reader(&w.scratch); err != nil {
			item.RecordsUnreadable = err.Error()
		}
	}
	if err := w.emit(item); err != nil || r == nil {
		return err
	}
	for r.Next() {
		if offset := r.Record().Offset; offset < w.o.From || offset >= w.o.To {
			continue
		}
		if err := w.emit(w.record(name, b, r)); err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil {
		return w.emit(&GarbageItem{place{"garbage", name}, pos, int64(len(b)), int64(len(b)), err.Error()})
	}
	return nil
}

func batchItem(name string, b record.Batch, pos int64) *BatchItem {
	a := b.Attributes()
	item := &BatchItem{
		place: place{"batch", name}, Position: pos, Size: int64(len(b)),
		BaseOffset: b.BaseOffset(), LastOffsetDelta: b.LastOffsetDelta(), Count: b.Count(), Length: int32(len(b) - 12),
		LeaderEpoch: b.LeaderEpoch(), Magic: b.Magic(), CRC: b.CRC(), CRCOK: b.CheckCRC() == nil,
		Attributes: uint16(a), Codec: a.Codec().String(), TimestampType: "CreateTime",
		Transactional: a.Transactional(), Control: a.Control(), DeleteHorizonSet: a.DeleteHorizon(),
		BaseTimestamp: b.BaseTimestamp(), MaxTimestamp: b.MaxTimestamp(),
		ProducerID: b.ProducerID(), ProducerEpoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence(),
	}
	if a.LogAppendTime() {
		item.TimestampType = "LogAppendTime"
	}
	if a.DeleteHorizon() {
		item.DeleteHorizonMs = &item.BaseTimestamp
	}
	return item
}

func (w *walk) record(name string, b record.Batch, r *record.Reader) *RecordItem {
	rec := r.Record()
	own := decodes(w.p.Topic) || b.Attributes().Control()
	show := func(p []byte) Payload { return Payload{Bytes: p, Short: !w.o.Long, Hex: own} }
	item := &RecordItem{
		place: place{"record", name}, Offset: rec.Offset, OffsetDelta: r.OffsetDelta(),
		Timestamp: rec.Timestamp, TimestampDelta: r.TimestampDelta(), Sequence: r.Sequence(),
		Length: recordLength(rec, r.OffsetDelta(), r.TimestampDelta()),
		Key:    show(rec.Key), Value: show(rec.Value),
	}
	for _, h := range rec.Headers {
		item.Headers = append(item.Headers, ShownHeader{string(h.Key), Payload{Bytes: h.Value, Short: !w.o.Long}})
	}
	var err error
	switch {
	case b.Attributes().Control():
		item.Control, err = decodeControl(rec.Key, rec.Value)
	case own:
		item.Decoded, err = Decode(w.p.Topic, rec.Key, rec.Value)
	}
	if err != nil {
		item.Error = err.Error()
	}
	return item
}

// recordLength is what the record's length field says: the size of what follows it.
func recordLength(r *record.Record, offsetDelta int32, timestampDelta int64) int {
	n := 1 + varintSize(timestampDelta) + varintSize(int64(offsetDelta)) +
		nullableSize(r.Key) + nullableSize(r.Value) + varintSize(int64(len(r.Headers)))
	for _, h := range r.Headers {
		n += nullableSize(h.Key) + nullableSize(h.Value)
	}
	return n
}

func nullableSize(p []byte) int {
	if p == nil {
		return varintSize(-1)
	}
	return varintSize(int64(len(p))) + len(p)
}

func varintSize(v int64) int {
	n := 1
	for z := uint64(v)<<1 ^ uint64(v>>63); z >= 0x80; z >>= 7 {
		n++
	}
	return n
}
