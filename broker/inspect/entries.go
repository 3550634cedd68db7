package inspect

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/millrace/millrace/txn/isolation"
)

// offsetEntry is an entry of an offset index.
type offsetEntry struct{ relative, position int32 }

// timeEntry is an entry of a time index.
type timeEntry struct {
	timestamp int64
	relative  int32
}

const (
	offsetEntrySize = 8
	timeEntrySize   = 12
)

// wholeEntries is how many entries an index file has: they end where the file does, or at an entry of nothing but zeros, as Kafka
// keeps room for more, and no entry is that. rest is what stands behind.
func wholeEntries(data []byte, size int) (n int, rest []byte) {
	for (n+1)*size <= len(data) && !zeros(data[n*size:(n+1)*size]) {
		n++
	}
	return n, data[n*size:]
}

func parseOffsetEntry(p []byte) offsetEntry {
	return offsetEntry{int32(binary.BigEndian.Uint32(p)), int32(binary.BigEndian.Uint32(p[4:]))}
}

func parseTimeEntry(p []byte) timeEntry {
	return timeEntry{int64(binary.BigEndian.Uint64(p)), int32(binary.BigEndian.Uint32(p[8:]))}
}

func parseAborted(p []byte) (version int16, a isolation.AbortedTxn) {
	be := binary.BigEndian
	return int16(be.Uint16(p)), isolation.AbortedTxn{
		ProducerID: int64(be.Uint64(p[2:])), FirstOffset: int64(be.Uint64(p[10:])),
		LastOffset: int64(be.Uint64(p[18:])), LastStableOffset: int64(be.Uint64(p[26:])),
	}
}

// entries shows the entries of an index file.
func (w *walk) entries(name, suffix string, base int64, data []byte) error {
	size := map[string]int{indexSuffix: offsetEntrySize, timeSuffix: timeEntrySize, txnSuffix: isolation.EntrySize}[suffix]
	n, rest := wholeEntries(data, size)
	for i := range n {
		var item Item
		switch p := data[i*size:]; suffix {
		case indexSuffix:
			e := parseOffsetEntry(p)
			item = &OffsetItem{place{"index", name}, i, base + int64(e.relative), e.relative, e.position}
		case timeSuffix:
			e := parseTimeEntry(p)
			item = &TimeItem{place{"timeindex", name}, i, base + int64(e.relative), e.relative, e.timestamp}
		default:
			version, a := parseAborted(p)
			item = &AbortedItem{place{"txnindex", name}, i, version, a.ProducerID, a.FirstOffset, a.LastOffset, a.LastStableOffset}
		}
		if err := w.emit(item); err != nil {
			return err
		}
	}
	return w.emit(&EndItem{place{suffix[1:] + "_end", name}, n, int64(len(data)), int64(len(rest))})
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sizes in a snapshot: see txn/producer.
const (
	snapshotHeader  = 10
	snapshotEntry   = 46
	snapshotVersion = 1
)

// readSnapshot shows Kafka's part of a snapshot; package txn/producer owns the format and judges it.
func readSnapshot(name string, data []byte) *SnapshotItem {
	item := &SnapshotItem{place: place{"snapshot", name}}
	be := binary.BigEndian
	if len(data) < snapshotHeader {
		item.Error = fmt.Sprintf("ProducerSnapshot of %d bytes, the header alone has %d", len(data), snapshotHeader)
		return item
	}
	if item.Version = int16(be.Uint16(data)); item.Version != snapshotVersion {
		item.Error = fmt.Sprintf("ProducerSnapshot has no version %d", item.Version)
		return item
	}
	out := &SnapshotData{CRC: be.Uint32(data[2:]), Producers: []ProducerEntry{}}
	item.CRCOK = crc32.Checksum(data[6:], castagnoli) == out.CRC
	n, p := int64(int32(be.Uint32(data[6:]))), data[snapshotHeader:]
	if n < 0 || n > int64(len(p)/snapshotEntry) {
		item.Error = fmt.Sprintf("ProducerSnapshot of %d producers in %d bytes", n, len(data))
		return item
	}
	for ; n > 0; n-- {
		out.Producers = append(out.Producers, ProducerEntry{
			ProducerID: int64(be.Uint64(p)), Epoch: int16(be.Uint16(p[8:])), LastSequence: int32(be.Uint32(p[10:])),
			LastOffset: int64(be.Uint64(p[14:])), OffsetDelta: int32(be.Uint32(p[22:])), Timestamp: int64(be.Uint64(p[26:])),
			CoordinatorEpoch: int32(be.Uint32(p[34:])), TxnFirstOffset: int64(be.Uint64(p[38:])),
		})
		p = p[snapshotEntry:]
	}
	item.Data, item.WindowBytes = out, int64(len(p))
	return item
}
