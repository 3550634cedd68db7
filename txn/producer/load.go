package producer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorruptSnapshot, fmt.Sprintf(format, args...))
}

// Load replaces the table by that of a snapshot, ours or Kafka's. The error wraps [ErrCorruptSnapshot], and the table is
// then as it was.
func (t *Table) Load(p []byte) error {
	be := binary.BigEndian
	if len(p) < snapshotHeader {
		return corrupt("%d bytes, the header alone has %d", len(p), snapshotHeader)
	}
	if v := int16(be.Uint16(p)); v != snapshotVersion {
		return corrupt("version %d, only %d is known", v, snapshotVersion)
	}
	if want, got := be.Uint32(p[2:]), crc32.Checksum(p[6:], castagnoli); want != got {
		return corrupt("checksum %#08x, the bytes have %#08x", want, got)
	}
	n := int64(int32(be.Uint32(p[6:])))
	p = p[snapshotHeader:]
	if n < 0 || n > int64(len(p)/snapshotEntry) {
		return corrupt("%d entries in %d bytes", n, len(p))
	}
	var loaded Table
	if n > 0 { // most partitions of a broker know nobody, and a map costs them memory
		loaded.entries = make(map[int64]*entry, n)
	}
	var open, quiet []*entry
	for ; n > 0; n-- {
		e, err := loadEntry(p[:snapshotEntry])
		if err != nil {
			return err
		}
		p = p[snapshotEntry:]
		if loaded.entries[e.id] != nil {
			return corrupt("producer id %d twice", e.id)
		}
		loaded.entries[e.id] = e
		if e.txnFirstOffset >= 0 {
			open = append(open, e)
		} else {
			quiet = append(quiet, e)
		}
	}
	if bytes.HasPrefix(p, []byte(sectionMagic)) {
		if err := loaded.loadSection(p); err != nil {
			return err
		}
	}
	loaded.open.fill(open)
	loaded.quiet.fill(quiet)
	loaded.peak = len(loaded.entries)
	*t = loaded
	return nil
}

func loadEntry(p []byte) (*entry, error) {
	be := binary.BigEndian
	e := &entry{
		id: int64(be.Uint64(p)), epoch: int16(be.Uint16(p[8:])),
		timestampMs:      int64(be.Uint64(p[26:])),
		coordinatorEpoch: int32(be.Uint32(p[34:])),
		txnFirstOffset:   int64(be.Uint64(p[38:])),
	}
	s := seen{
		lastSequence: int32(be.Uint32(p[10:])), lastOffset: int64(be.Uint64(p[14:])), offsetDelta: int32(be.Uint32(p[22:])),
		timestampMs: e.timestampMs,
	}
	if e.txnFirstOffset < -1 {
		return nil, corrupt("producer id %d has a transaction from offset %d", e.id, e.txnFirstOffset)
	}
	if s.lastOffset >= 0 {
		if err := s.check(e.id); err != nil {
			return nil, err
		}
		e.push(s)
	}
	e.infer()
	return e, nil
}

func (s seen) check(id int64) error {
	if s.offsetDelta < 0 || s.lastOffset < int64(s.offsetDelta) || s.lastSequence < -1 {
		return corrupt("producer id %d has a batch up to offset %d, sequence %d, with offset delta %d", id, s.lastOffset, s.lastSequence, s.offsetDelta)
	}
	return nil
}

// loadSection adds what our own section says, which must be whole and fit the entries.
func (t *Table) loadSection(p []byte) error {
	be := binary.BigEndian
	if len(p) < sectionHeader {
		return corrupt("the section of windows has %d bytes", len(p))
	}
	n := int64(int32(be.Uint32(p[4:])))
	p = p[sectionHeader:]
	if n < 0 || n > int64(len(p)/sectionEntry) {
		return corrupt("%d windows in %d bytes", n, len(p))
	}
	for ; n > 0; n-- {
		if len(p) < sectionEntry {
			return corrupt("the section of windows ends early")
		}
		id, batches := int64(be.Uint64(p)), int(p[19])
		e := t.entries[id]
		if e == nil {
			return corrupt("a window for producer id %d, which has no entry", id)
		}
		if batches > Window || len(p) < sectionEntry+batches*sectionBatch {
			return corrupt("producer id %d has a window of %d batches in %d bytes", id, batches, len(p))
		}
		if p[10] > byte(resultCommit) {
			return corrupt("producer id %d has a marker with result %d", id, p[10])
		}
		e.markerEpoch, e.markerResult, e.seenMs = int16(be.Uint16(p[8:])), markerResult(p[10]), int64(be.Uint64(p[11:]))
		p = p[sectionEntry:]
		e.n, e.window = 0, [Window]seen{}
		for range batches {
			s := seen{
				lastSequence: int32(be.Uint32(p)), offsetDelta: int32(be.Uint32(p[4:])),
				lastOffset: int64(be.Uint64(p[8:])), timestampMs: int64(be.Uint64(p[16:])),
			}
			if err := s.check(id); err != nil {
				return err
			}
			e.push(s)
			p = p[sectionBatch:]
		}
	}
	if len(p) > 0 {
		return corrupt("%d bytes are left behind the section of windows", len(p))
	}
	return nil
}
