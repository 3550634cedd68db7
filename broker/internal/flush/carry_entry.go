package flush

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"path"
	"strings"
)

// Piece is bytes that a target appended to one of its files and wants to be durable.
type Piece struct {
	ID ID
	// File is the file's path below the flusher's folder, with slashes.
	File     string
	Position int64 // of Data in the file
	Next     int64 // the log's next offset behind Data
	Data     []byte
}

// An append journal is a head, magic | generation u64 | salt u64 | crc u32, and entries, big endian:
//
//	crc u32 | size u32 | salt u64 | topic id | partition i32 | position i64 | next offset i64 | length of file u16 | file | data
//
// The CRC-32C covers all behind it, size is that of the whole entry. The file is written over and over; the salt, which is drawn for
// each generation, tells the entries of this time from those of an earlier one, and the first entry that does not check ends the
// file. What lies behind it may be anything that clients once sent, an entry that one of them made up too: nobody can know the salt
// before it is drawn, so it is not taken for one of ours.
var carryMagic = []byte("MILLAPND\x00\x00\x00\x01")

const (
	carryHead      = 12 + 8 + 8 + 4
	carryEntryHead = 4 + 4 + 8 + 16 + 4 + 8 + 8 + 2
)

func appendCarryHead(dst []byte, generation, salt uint64) []byte {
	at := len(dst)
	dst = append(dst, carryMagic...)
	dst = binary.BigEndian.AppendUint64(dst, generation)
	dst = binary.BigEndian.AppendUint64(dst, salt)
	return binary.BigEndian.AppendUint32(dst, crc32.Checksum(dst[at:], castagnoli))
}

// carrySize is how many bytes a piece takes.
func carrySize(p Piece) int { return carryEntryHead + len(p.File) + len(p.Data) }

func appendPiece(dst []byte, salt uint64, p Piece) []byte {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(carrySize(p)))
	dst = binary.BigEndian.AppendUint64(dst, salt)
	dst = append(dst, p.ID.Topic[:]...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.ID.Partition))
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.Position))
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.Next))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(p.File)))
	dst = append(append(dst, p.File...), p.Data...)
	binary.BigEndian.PutUint32(dst[at:], crc32.Checksum(dst[at+4:], castagnoli))
	return dst
}

// readCarry reads an append journal: its generation, 0 for a file that has none, and its pieces in their order.
func readCarry(data []byte) (generation uint64, pieces []Piece) {
	if len(data) < carryHead || !bytes.Equal(data[:len(carryMagic)], carryMagic) ||
		crc32.Checksum(data[:carryHead-4], castagnoli) != binary.BigEndian.Uint32(data[carryHead-4:]) {
		return 0, nil
	}
	generation = binary.BigEndian.Uint64(data[len(carryMagic):])
	salt := binary.BigEndian.Uint64(data[len(carryMagic)+8:])
	for data = data[carryHead:]; ; {
		p, size := readPiece(data, salt)
		if size == 0 {
			return generation, pieces
		}
		pieces = append(pieces, p)
		data = data[size:]
	}
}

// readPiece reads the entry at the start of buf, whose bytes the piece keeps; size is 0 if there is none that checks.
func readPiece(buf []byte, salt uint64) (p Piece, size int) {
	if len(buf) < carryEntryHead {
		return p, 0
	}
	size = int(binary.BigEndian.Uint32(buf[4:]))
	name := int(binary.BigEndian.Uint16(buf[carryEntryHead-2:]))
	if size < carryEntryHead+name || size > len(buf) || binary.BigEndian.Uint64(buf[8:]) != salt ||
		crc32.Checksum(buf[4:size], castagnoli) != binary.BigEndian.Uint32(buf) {
		return p, 0
	}
	p.ID.Topic = [16]byte(buf[16:32])
	p.ID.Partition = int32(binary.BigEndian.Uint32(buf[32:]))
	p.Position = int64(binary.BigEndian.Uint64(buf[36:]))
	p.Next = int64(binary.BigEndian.Uint64(buf[44:]))
	p.File = string(buf[carryEntryHead : carryEntryHead+name])
	p.Data = buf[carryEntryHead+name : size]
	return p, size
}

// below says that a path stays below the folder that it is relative to, so that no journal makes us write elsewhere.
func below(file string) bool {
	return file != "" && !path.IsAbs(file) && path.Clean(file) == file && file != ".." && !strings.HasPrefix(file, "../") &&
		!strings.Contains(file, "\\")
}
