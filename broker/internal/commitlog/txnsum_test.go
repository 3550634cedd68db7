package commitlog

import (
	"bytes"
	"errors"
	"testing"

	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/isolation"
)

// Every single wrong bit of a transaction index, and of its sum, is found.
func TestTransactionIndexWithAWrongBit(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	s := newSegment(&place{mem, ".", unbounded()}, 0)
	entries := []isolation.AbortedTxn{
		{ProducerID: 7, FirstOffset: 2, LastOffset: 9, LastStableOffset: 5}, {ProducerID: 8, FirstOffset: 5, LastOffset: 12, LastStableOffset: 13},
	}
	var index []byte
	for _, a := range entries {
		index = isolation.AppendEntry(index, a)
	}
	write := func(name string, data []byte) {
		if err := vfs.WriteFile(mem, s.path(name), data, false); err != nil {
			t.Fatal(err)
		}
	}
	write(txnSuffix, index)
	if err := s.writeTxnSum(entries); err != nil {
		t.Fatal(err)
	}
	got, err := s.readTxns(-1)
	if err != nil || len(got) != 2 || got[0] != entries[0] || got[1] != entries[1] {
		t.Fatalf("read %v, %v", got, err)
	}
	// A checkpoint that is older than the sum reads a part; a longer one finds the sum too short.
	if got, err := s.readTxns(isolation.EntrySize); err != nil || len(got) != 1 {
		t.Errorf("the first entry: %v, %v", got, err)
	}
	if _, err := s.readTxns(3 * isolation.EntrySize); !errors.Is(err, errBadIndex) {
		t.Errorf("three entries of two: %v", err)
	}
	for name, whole := range map[string][]byte{txnSuffix: index, txnSumSuffix: encodeTxnSum(index)} {
		for bit := range 8 * len(whole) {
			wrong := bytes.Clone(whole)
			wrong[bit/8] ^= 1 << (bit % 8)
			write(name, wrong)
			if got, err := s.readTxns(-1); !errors.Is(err, errBadIndex) {
				t.Errorf("%s with bit %d wrong: %v, %v", name, bit, got, err)
			}
		}
		write(name, whole)
	}
	if err := mem.Remove(s.path(txnSuffix)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.readTxns(-1); !errors.Is(err, errBadIndex) {
		t.Errorf("an index that is gone: %v", err)
	}
}

// A power cut while the indexes of a segment are written never leaves the others without the transaction index: the opening would
// take that for a segment in which no transaction was aborted.
func TestTransactionIndexComesFirst(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	disk := vfs.WithFaults(mem)
	s := newSegment(&place{disk, ".", unbounded()}, 0)
	s.fresh()
	s.mem.Load().txns.add(isolation.AbortedTxn{ProducerID: 7, FirstOffset: 2, LastOffset: 9, LastStableOffset: 5})
	cuts := 0
	disk.OnOp(func(vfs.Op) {
		for seed := range uint64(20) {
			left := newSegment(&place{mem.CrashClone(seed), ".", unbounded()}, 0)
			_, err := left.fs.Stat(left.path(indexSuffix))
			if _, err2 := left.fs.Stat(left.path(timeSuffix)); err != nil && err2 != nil {
				continue
			}
			cuts++
			if list, err := left.readTxns(-1); len(list) != 1 {
				t.Errorf("seed %d: an index is there, and the aborted transactions are %v, %v", seed, list, err)
			}
		}
	})
	if err := s.replaceIndexes(); err != nil {
		t.Fatal(err)
	}
	if cuts == 0 {
		t.Error("no power cut has left an index")
	}
}
