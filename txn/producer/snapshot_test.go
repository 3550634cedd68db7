package producer_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/txn/producer"
)

// TestSnapshotRefuses flips every bit of a snapshot and cuts it at every length: an error each time, and the table stays.
func TestSnapshotRefuses(t *testing.T) {
	t.Parallel()
	l := partition{t: t, now: 5}
	for i := range int32(3) {
		l.produce(1, 0, i, 1, true)
		l.produce(2, 0, i, 1, false)
	}
	raw := l.Snapshot(nil)
	var table producer.Table
	if err := table.Load(raw); err != nil {
		t.Fatal(err)
	}
	for i := range len(raw) * 8 {
		raw[i/8] ^= 1 << (i % 8)
		if err := table.Load(raw); !errors.Is(err, producer.ErrCorruptSnapshot) {
			t.Errorf("bit %d of byte %d flipped: %v", i%8, i/8, err)
		}
		raw[i/8] ^= 1 << (i % 8)
	}
	for n := range raw {
		if err := table.Load(raw[:n]); !errors.Is(err, producer.ErrCorruptSnapshot) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	if !bytes.Equal(table.Snapshot(nil), raw) {
		t.Error("a refused snapshot changed the table")
	}
}

// TestSnapshotForKafka reads our snapshot as Kafka does: version, checksum over all the rest, then as many entries as the
// count says. They must be the last batches.
func TestSnapshotForKafka(t *testing.T) {
	t.Parallel()
	l := partition{t: t, now: 5}
	for i := range int32(6) {
		l.produce(7, 2, i*10, 10, true)
	}
	raw := l.Snapshot([]byte("before"))[len("before"):]
	be := binary.BigEndian
	if be.Uint16(raw) != 1 || be.Uint32(raw[2:]) != crc32.Checksum(raw[6:], crc32.MakeTable(crc32.Castagnoli)) || be.Uint32(raw[6:]) != 1 {
		t.Fatalf("header % x", raw[:10])
	}
	e := raw[10:56]
	got := fmt.Sprint(be.Uint64(e), be.Uint16(e[8:]), be.Uint32(e[10:]), be.Uint64(e[14:]), be.Uint32(e[22:]), be.Uint64(e[26:]), int32(be.Uint32(e[34:])), be.Uint64(e[38:]))
	if want := "7 2 59 59 9 1050 -1 0"; got != want {
		t.Errorf("entry %s, want %s", got, want)
	}
	if len(raw) <= 56 {
		t.Error("there is no room for the other four batches")
	}
	// What another writer put behind the entries is not ours and is left alone.
	foreign := append(raw[:56:56], "something else"...)
	be.PutUint32(foreign[2:], crc32.Checksum(foreign[6:], crc32.MakeTable(crc32.Castagnoli)))
	var table producer.Table
	if err := table.Load(foreign); err != nil || table.Len() != 1 {
		t.Errorf("%d producers, %v", table.Len(), err)
	}
}

// FuzzSnapshot loads any bytes under a fitting checksum. What loads must come back the same through Snapshot and Load.
func FuzzSnapshot(f *testing.F) {
	for _, decoded := range goldenPartitions(f) {
		files, err := filepath.Glob(decoded[:len(decoded)-len(".decoded.jsonl.gz")] + "/*.snapshot")
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(raw)
		}
	}
	var table producer.Table
	for i := range int32(8) {
		table.Apply(producer.Batch{ProducerID: int64(i % 2), BaseSequence: i, LastSequence: i, BaseOffset: int64(i), LastOffset: int64(i), SeenMs: 9, Transactional: i%3 == 0})
	}
	table.ApplyMarker(producer.Marker{ProducerID: 3, Epoch: 4, CoordinatorEpoch: 5, Commit: true}, 9, 9)
	f.Add(table.Snapshot(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) >= 10 {
			raw = bytes.Clone(raw)
			binary.BigEndian.PutUint16(raw, 1)
			binary.BigEndian.PutUint32(raw[2:], crc32.Checksum(raw[6:], crc32.MakeTable(crc32.Castagnoli)))
		}
		var table, again producer.Table
		if err := table.Load(raw); err != nil {
			if !errors.Is(err, producer.ErrCorruptSnapshot) || table.Len() != 0 {
				t.Fatalf("%d producers, %v", table.Len(), err)
			}
			return
		}
		out := table.Snapshot(nil)
		if err := again.Load(out); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Snapshot(nil), out) || fmt.Sprint(states(&again)) != fmt.Sprint(states(&table)) {
			t.Fatalf("%v\nbecame\n%v", states(&table), states(&again))
		}
		first, any := again.FirstOpen()
		for s := range again.All() {
			if s.TxnFirstOffset >= 0 && (!any || s.TxnFirstOffset < first) {
				t.Fatalf("first open %d, %v, but there is %+v", first, any, s)
			}
		}
	})
}
