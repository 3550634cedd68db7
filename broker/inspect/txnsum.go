package inspect

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// sumSize is the size of a .txnsum, which stands beside a transaction index of ours: int64 how many bytes of the index it speaks
// of, uint32 their CRC-32C, uint32 the CRC-32C of the 12 bytes before. See package commitlog.
const sumSize = 16

// SumItem is the checksum beside a transaction index.
type SumItem struct {
	place
	IndexBytes int64  `json:"index_bytes"` // how much of the index it speaks of
	CRC        uint32 `json:"crc"`
	CRCOK      bool   `json:"crc_ok"`
	Error      string `json:"error,omitempty"`
}

func (i *SumItem) String() string {
	if i.Error != "" {
		return i.File + ": UNREADABLE: " + i.Error
	}
	s := fmt.Sprintf("%s: checksum %#08x of %d bytes", i.File, i.CRC, i.IndexBytes)
	if !i.CRCOK {
		s += " CRC-WRONG"
	}
	return s
}

// readSum reads a checksum file and compares it with the index.
func readSum(name string, sum, index []byte) *SumItem {
	item := &SumItem{place: place{"txnsum", name}}
	be := binary.BigEndian
	if len(sum) != sumSize || be.Uint32(sum[12:]) != crc32.Checksum(sum[:12], castagnoli) {
		item.Error = fmt.Sprintf("the %d bytes do not check themselves", len(sum))
		return item
	}
	item.IndexBytes, item.CRC = int64(be.Uint64(sum)), be.Uint32(sum[8:])
	item.CRCOK = item.IndexBytes >= 0 && item.IndexBytes <= int64(len(index)) &&
		crc32.Checksum(index[:item.IndexBytes], castagnoli) == item.CRC
	return item
}

// encodeSum makes the checksum file of an index.
func encodeSum(index []byte) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, sumSize), uint64(len(index)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(index, castagnoli))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// sum checks the checksum of a transaction index whose first size bytes count. Kafka has none.
func (c *ground) sum(base int64, index []byte, size int64) error {
	name := fileName(base, sumSuffix)
	if !c.p.has(name) {
		if c.journal && size > 0 {
			c.find(Rebuildable, name, -1, -1, "the checksum of the transaction index is missing")
		}
		return nil
	}
	data, err := c.p.read(name)
	if err != nil {
		return err
	}
	switch item := readSum(name, data, index); {
	case item.Error != "":
		c.find(Rebuildable, name, 0, -1, "%s", item.Error)
	case item.IndexBytes < size:
		c.find(Rebuildable, name, 0, -1, "it speaks of %d bytes of the transaction index, %d count", item.IndexBytes, size)
	case !item.CRCOK:
		c.find(Rebuildable, name, 0, -1, "it does not fit the transaction index of %d bytes", len(index))
	}
	return nil
}
