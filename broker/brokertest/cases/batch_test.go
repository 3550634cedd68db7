package cases

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The batches here are built and read with kmsg and the standard library, not with this module's own record package:
// a fault there must not hide itself.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batch describes one record batch to be sent.
type batch struct {
	pid      int64
	epoch    int16
	seq      int32
	txn      bool
	control  bool
	values   []string
	key      []byte // of every record; nil = null
	timeMs   int64  // 0 = now
	baseSkip int64  // base offset as sent; must be 0 for a well-behaved client
}

// plain is a batch of a producer without an id.
func plain(values ...string) batch {
	return batch{pid: -1, epoch: -1, seq: -1, values: values, key: []byte("k")}
}

func (b batch) bytes() []byte {
	now := b.timeMs
	if now == 0 {
		now = time.Now().UnixMilli()
	}
	var records []byte
	for i, v := range b.values {
		r := kmsg.NewRecord()
		r.OffsetDelta = int32(i)
		r.Key, r.Value = b.key, []byte(v)
		body := r.AppendTo(nil)
		// AppendTo writes Length first as a varint of what follows; 0 takes one byte.
		r.Length = int32(len(body) - 1)
		records = r.AppendTo(records)
	}
	var attr int16
	if b.txn {
		attr |= 1 << 4
	}
	if b.control {
		attr |= 1 << 5
	}
	rb := kmsg.NewRecordBatch()
	rb.FirstOffset = b.baseSkip
	rb.PartitionLeaderEpoch = -1
	rb.Magic = 2
	rb.Attributes = attr
	rb.LastOffsetDelta = int32(len(b.values) - 1)
	rb.FirstTimestamp, rb.MaxTimestamp = now, now
	rb.ProducerID, rb.ProducerEpoch, rb.FirstSequence = b.pid, b.epoch, b.seq
	rb.NumRecords = int32(len(b.values))
	rb.Records = records
	out := rb.AppendTo(nil)
	return seal(out)
}

// seal fills in length and checksum of an encoded batch.
func seal(b []byte) []byte {
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	return b
}

// stored is one batch as a broker serves it.
type stored struct {
	kmsg.RecordBatch
	values []string
}

func (s stored) last() int64   { return s.FirstOffset + int64(s.LastOffsetDelta) }
func (s stored) control() bool { return s.Attributes&(1<<5) != 0 }
func (s stored) txn() bool     { return s.Attributes&(1<<4) != 0 }

// commits says of a control batch whether it is a commit marker.
func (s stored) commits() bool {
	r, _ := readRecord(s.Records)
	return len(r.Key) == 4 && r.Key[3] == 1
}

// decode splits what a Fetch answered into batches; a partial last batch is left out, as clients do.
func decode(raw []byte) []stored {
	var out []stored
	for len(raw) >= 61 {
		n := int(binary.BigEndian.Uint32(raw[8:])) + 12
		if n > len(raw) {
			break
		}
		var s stored
		if err := s.ReadFrom(raw[:n]); err != nil {
			break
		}
		rest := s.Records
		for range s.NumRecords {
			r, n := readRecord(rest)
			if n == 0 {
				break
			}
			s.values = append(s.values, string(r.Value))
			rest = rest[n:]
		}
		out = append(out, s)
		raw = raw[n:]
	}
	return out
}

// readRecord decodes one uncompressed record and says how many bytes it took.
func readRecord(b []byte) (kmsg.Record, int) {
	length, n := binary.Varint(b)
	var r kmsg.Record
	if n <= 0 || length < 0 || n+int(length) > len(b) || r.ReadFrom(b[:n+int(length)]) != nil {
		return r, 0
	}
	return r, n + int(length)
}
