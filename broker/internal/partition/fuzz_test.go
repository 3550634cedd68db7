package partition

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// FuzzRecovery opens a folder with any bytes in its log and its snapshot. It never panics and never invents: what is served is a
// beginning of the bytes, every batch of it checks, and a second opening finds the same.
func FuzzRecovery(f *testing.F) {
	s := &sender{id: 1, txn: true}
	a, b := s.batch(f, 1, "a", "b"), plain.batch(f, 2, "c")
	record.Batch(b).SetBaseOffset(2)
	m := record.BuildControl(nil, record.Marker{ProducerID: 1, ProducerEpoch: 1, TimestampMs: 5})
	m.SetBaseOffset(3)
	whole := append(append(a, b...), m...)
	var p producers
	for batch, err := range record.Batches(whole) {
		if err != nil {
			f.Fatal(err)
		}
		if _, _, err := p.Replay(batch); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(whole, []byte(nil), []byte(nil), false)
	f.Add(whole, p.Snapshot(nil), []byte("0\n1\n0 0\n"), true)
	f.Add(whole[:len(whole)-5], p.Snapshot(nil), []byte("0\n2\n0 0\n5 2\n"), true)
	f.Add(append(whole, make([]byte, 100)...), []byte("x"), []byte("1\n"), true)
	f.Fuzz(func(t *testing.T, log, snapshot, epochs []byte, sum bool) {
		if sum { // let what the fuzzer did to the batches get past the checksum
			for rest := log; ; {
				b, next, err := record.Next(rest)
				if err != nil {
					break
				}
				b.SetCRC()
				rest = next
			}
		}
		mem := vfs.NewMem()
		r := newRig(t, mem, commitlog.Config{IndexIntervalBytes: 100})
		if err := mem.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string][]byte{
			"00000000000000000000.log": log, "00000000000000000004.snapshot": snapshot, "leader-epoch-checkpoint": epochs,
		} {
			if len(content) == 0 {
				continue
			}
			if err := vfs.WriteFile(mem, filepath.Join(dir, name), content, true); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.tryOpen(); err != nil {
			var corrupt *record.CorruptError // a marker whose checksum is right and whose content is not
			if !errors.Is(err, commitlog.ErrDamaged) && !errors.As(err, &corrupt) {
				t.Fatal(err)
			}
			if after, err := vfs.ReadFile(mem, filepath.Join(dir, "00000000000000000000.log")); len(log) > 0 && (err != nil || string(after) != string(log)) {
				t.Fatal("a refused log was changed")
			}
			return
		}
		served := ""
		if err := r.p.Replay(func(b record.Batch) error { served += string(b); return b.CheckCRC() }); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(log), served) {
			t.Fatal("what is served is no beginning of the log")
		}
		marks := r.p.Marks()
		r.append(plain.batch(t, 1, "next"))
		r.close()
		p := r.open()
		if m := p.Marks(); m.LogEnd != marks.LogEnd+1 {
			t.Fatalf("%+v, then %+v", marks, m)
		}
		r.close()
	})
}
