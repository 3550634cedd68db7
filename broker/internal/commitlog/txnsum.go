package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/isolation"
)

// Kafka's transaction index has no checksum, and readers believe what it says: with one wrong bit in it, records of an aborted
// transaction would be shown as committed. So a file of our own stands beside it,
//
//	<20 digits>.txnsum  16 bytes, big endian: int64 how many bytes of the index it speaks of; uint32 their CRC-32C; uint32 the
//	                    CRC-32C of the 12 bytes before
//
// written after the index is synced and before anything relies on it. The index only grows, so a sum that a crash left behind
// is still true of its part. An index without a sum, as Kafka leaves it, is not believed but built again from the batches.

const txnSumSize = 16

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodeTxnSum(index []byte) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, txnSumSize), uint64(len(index)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(index, castagnoli))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// writeTxnSum follows a write of the index up to size bytes. Its name becomes durable with the next sync of the folder.
func (s *segment) writeTxnSum(entries []isolation.AbortedTxn) error {
	index := make([]byte, 0, len(entries)*isolation.EntrySize)
	for _, a := range entries {
		index = isolation.AppendEntry(index, a)
	}
	return vfs.WriteFile(s.fs, s.path(txnSumSuffix), encodeTxnSum(index), false)
}

// readTxns reads the first size bytes of the index, or all of it for -1, and compares them with the sum. Errors that wrap
// errBadIndex call for a rebuild. No file is an index without entries, unless there is a sum.
func (s *segment) readTxns(size int64) ([]isolation.AbortedTxn, error) {
	sum, err := s.readFile(txnSumSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	index, err := s.readFile(txnSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if size < 0 {
		size = int64(len(index))
	}
	if len(sum) == 0 && size == 0 {
		return nil, nil // no transaction was aborted here
	}
	if err := checkTxnSum(sum, index, size); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errBadIndex, s.path(txnSuffix), err)
	}
	list, err := isolation.ParseIndex(index[:size])
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errBadIndex, s.path(txnSuffix), err)
	}
	return list, nil
}

// checkTxnSum tells whether the sum speaks of at least size bytes of the index and is true of them.
func checkTxnSum(sum, index []byte, size int64) error {
	be := binary.BigEndian
	if len(sum) != txnSumSize || be.Uint32(sum[12:]) != crc32.Checksum(sum[:12], castagnoli) {
		return errors.New("it has no checksum, or one that does not check")
	}
	covers := be.Uint64(sum)
	if covers < uint64(size) || covers > uint64(len(index)) {
		return fmt.Errorf("its checksum is of %d bytes, the file has %d and %d are in use", covers, len(index), size)
	}
	if crc32.Checksum(index[:covers], castagnoli) != be.Uint32(sum[8:]) {
		return errors.New("its checksum does not match")
	}
	return nil
}
