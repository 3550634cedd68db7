package flush

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// ID names a partition across restarts; a topic created anew under an old name has another id.
type ID struct {
	Topic     [16]byte
	Partition int32
}

func (id ID) String() string { return fmt.Sprintf("%x-%d", id.Topic, id.Partition) }

// Checkpoint is where recovery of a partition may start: all before it is durable and complete, in the log, in the
// indexes (up to the given lengths, in bytes) and in a producer snapshot at Offset or before.
type Checkpoint struct {
	Offset   int64 // the next offset
	Segment  int64 // base offset of the segment that Offset goes to
	Position int64 // size of that segment's log file at Offset
	// Index, TimeIndex and TxnIndex are the sizes of that segment's index files.
	Index, TimeIndex, TxnIndex int64
}

// Point is what the journal knows of a partition.
type Point struct {
	Synced     int64 // every batch below was durable; 0 when nothing is known
	LogStart   int64 // 0 when it never moved
	Checkpoint Checkpoint
}

// Kinds of journal records. The layout is crc u32 | kind u8 | topic id | partition i32 | int64s of the kind, big endian;
// the CRC-32C covers all behind it.
const (
	kindSynced     = 1 // offset
	kindStart      = 2 // offset
	kindCheckpoint = 3 // the fields of Checkpoint in their order
	kindForget     = 4
	kindClosed     = 5 // of no partition: everything had been closed

	entryHead = 4 + 1 + 16 + 4
	maxEntry  = entryHead + 6*8
)

// fields is the number of int64s per kind, -1 for a kind that does not exist.
func fields(kind byte) int {
	switch kind {
	case kindSynced, kindStart:
		return 1
	case kindCheckpoint:
		return 6
	case kindForget, kindClosed:
		return 0
	}
	return -1
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendEntry(dst []byte, kind byte, id ID, v ...int64) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0, kind)
	dst = append(dst, id.Topic[:]...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(id.Partition))
	for _, x := range v {
		dst = binary.BigEndian.AppendUint64(dst, uint64(x))
	}
	binary.BigEndian.PutUint32(dst[at:], crc32.Checksum(dst[at+4:], castagnoli))
	return dst
}

// appendStart writes a log start twice. A record that a wrong bit takes away is skipped, as after a power cut; for the
// other kinds that only means more to check at a restart, but a lost log start would bring deleted records back.
func appendStart(dst []byte, id ID, offset int64) []byte {
	return appendEntry(appendEntry(dst, kindStart, id, offset), kindStart, id, offset)
}

func appendCheckpoint(dst []byte, id ID, c Checkpoint) []byte {
	return appendEntry(dst, kindCheckpoint, id, c.Offset, c.Segment, c.Position, c.Index, c.TimeIndex, c.TxnIndex)
}

// readEntry reads the record at the start of buf and returns its size, 0 if there is none that checks.
func readEntry(buf []byte) (kind byte, id ID, v [6]int64, size int) {
	if len(buf) < entryHead {
		return 0, ID{}, v, 0
	}
	kind = buf[4]
	n := fields(kind)
	size = entryHead + 8*n
	if n < 0 || len(buf) < size || crc32.Checksum(buf[4:size], castagnoli) != binary.BigEndian.Uint32(buf) {
		return 0, ID{}, v, 0
	}
	copy(id.Topic[:], buf[5:])
	id.Partition = int32(binary.BigEndian.Uint32(buf[21:]))
	for i := range n {
		v[i] = int64(binary.BigEndian.Uint64(buf[entryHead+8*i:]))
	}
	return kind, id, v, size
}

// apply takes one record into the state.
func apply(state map[ID]Point, kind byte, id ID, v [6]int64) {
	p := state[id]
	switch kind {
	case kindForget:
		delete(state, id)
		return
	case kindClosed:
		return
	case kindSynced:
		p.Synced = max(p.Synced, v[0])
	case kindStart:
		p.LogStart = max(p.LogStart, v[0])
	case kindCheckpoint:
		p.Checkpoint = Checkpoint{v[0], v[1], v[2], v[3], v[4], v[5]}
		p.Synced = max(p.Synced, v[0])
	}
	state[id] = p
}
