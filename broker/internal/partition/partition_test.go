package partition

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

var topicID = [16]byte{1, 2, 3}

// rig is a partition with all it stands on, which can be stopped in three ways and started again.
type rig struct {
	t       testing.TB
	fs      vfs.FS
	config  commitlog.Config
	clock   *clock.Manual
	logger  *slog.Logger
	epoch   int32
	flusher *flush.Flusher
	p       *Partition
	// alone has the partition's files synced on their own; otherwise append journals of a small size carry what they can.
	alone bool
	files *commitlog.Files
}

func newRig(t testing.TB, fsys vfs.FS, c commitlog.Config) *rig {
	t.Helper()
	r := &rig{t: t, fs: fsys, config: c, clock: clock.NewManual(time.UnixMilli(1_700_000_000_000)), files: commitlog.NewFiles(1)}
	if err := errors.Join(fsys.MkdirAll("data"), fsys.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) tryOpen() (err error) {
	r.t.Helper()
	carry := int64(16 << 10)
	if r.alone {
		carry = -1
	}
	r.flusher, err = flush.New(flush.Options{FS: r.fs, Dir: "data", Clock: r.clock, Logger: r.logger, CarryBytes: carry})
	if err != nil {
		return err
	}
	r.p, err = Open(Options{
		FS: r.fs, Dir: filepath.Join("data", "t-0"), Topic: "t", TopicID: topicID, LeaderEpoch: r.epoch, Log: r.config, Durable: true,
		Flusher: r.flusher, Files: r.files, Clock: r.clock, Logger: r.logger,
	})
	if err != nil {
		return errors.Join(err, r.flusher.Close())
	}
	return nil
}

func (r *rig) open() *Partition {
	r.t.Helper()
	if err := r.tryOpen(); err != nil {
		r.t.Fatal(err)
	}
	return r.p
}

func (r *rig) close() {
	r.t.Helper()
	if err := r.p.Close(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.flusher.Close(); err != nil {
		r.t.Fatal(err)
	}
}

// sender builds batches.
type sender struct {
	id       int64
	epoch    int16
	sequence int32
	txn      bool
	codec    record.Codec
}

var plain = &sender{id: -1}

// batch makes a batch of values with rising timestamps from ts on.
func (s *sender) batch(t testing.TB, ts int64, values ...string) []byte {
	t.Helper()
	var b record.Builder
	o := record.BuilderOptions{Codec: s.codec, Transactional: s.txn}
	if s.id >= 0 {
		o.Producer = &record.Producer{ID: s.id, Epoch: s.epoch, Sequence: s.sequence}
		s.sequence += int32(len(values))
	}
	b.Reset(o)
	for i, v := range values {
		b.Append(ts+int64(i), []byte("k"), []byte(v), nil)
	}
	out, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(nil), out...)
}

// await waits for an offset to be acknowledged.
func await(p *Partition, offset int64) error {
	done := make(chan error, 1)
	p.Await(offset, func(err error) { done <- err })
	return <-done
}

func (r *rig) append(b []byte) Appended {
	r.t.Helper()
	a, err := r.p.Append(append([]byte(nil), b...), AppendOptions{RequestVersion: 12, Guard: r.guardFor(b)})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := await(r.p, a.LastOffset); err != nil {
		r.t.Fatal(err)
	}
	return a
}

func (r *rig) guardFor(b []byte) Guard {
	batch := record.Batch(b)
	if !batch.Attributes().Transactional() {
		return Guard{}
	}
	return r.p.BeginVerify(batch.ProducerID(), batch.ProducerEpoch(), batch.BaseSequence())
}

// bytesOf reads all of a Read's sections.
func bytesOf(t testing.TB, r *Read) []byte {
	t.Helper()
	out := make([]byte, 0, r.Bytes)
	for _, s := range r.Sections {
		buf := make([]byte, s.Len)
		if _, err := s.File.ReadAt(buf, s.Offset); err != nil {
			t.Fatal(err)
		}
		out = append(out, buf...)
	}
	return out
}

type got struct {
	offset, ts int64
	value      string
}

// records reads everything from an offset on, as a consumer does, in fetches of the given size.
func records(t testing.TB, p *Partition, from int64, maxBytes int32, committed bool) []got {
	t.Helper()
	var out []got
	for {
		r, err := p.Read(ReadOptions{Offset: from, MaxBytes: maxBytes, Committed: committed, AtLeastOne: true})
		if err != nil {
			t.Fatal(err)
		}
		if r.Bytes == 0 {
			r.Release()
			return out
		}
		for b, err := range record.Batches(bytesOf(t, r)) {
			if err != nil {
				t.Fatal(err)
			}
			if err := b.CheckCRC(); err != nil {
				t.Fatal(err)
			}
			if !b.Attributes().Control() {
				for rec, err := range b.Records(nil) {
					if err != nil {
						t.Fatal(err)
					}
					if rec.Offset >= from {
						out = append(out, got{rec.Offset, rec.Timestamp, string(rec.Value)})
					}
				}
			}
			from = b.LastOffset() + 1
		}
		r.Release()
	}
}

func TestAppendReadReopen(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), commitlog.Config{SegmentBytes: 700, IndexIntervalBytes: 200})
	p := r.open()
	var want []got
	for i := range 50 {
		a := r.append(plain.batch(t, int64(1000+10*i), fmt.Sprint(i, "a"), fmt.Sprint(i, "b")))
		if a.BaseOffset != int64(2*i) || a.LastOffset != int64(2*i+1) {
			t.Fatalf("batch %d went to %+v", i, a)
		}
		want = append(want, got{int64(2 * i), int64(1000 + 10*i), fmt.Sprint(i, "a")}, got{int64(2*i + 1), int64(1001 + 10*i), fmt.Sprint(i, "b")})
	}
	check := func(p *Partition) {
		t.Helper()
		for _, size := range []int32{1, 100, 500, 1 << 20} {
			for from := range int64(100) {
				have := records(t, p, from, size, false)
				if fmt.Sprint(have) != fmt.Sprint(want[from:]) {
					t.Fatalf("from %d by %d:\n have %v\n want %v", from, size, have, want[from:])
				}
			}
		}
	}
	check(p)
	if n := len(p.log.Segments()); n < 5 {
		t.Fatalf("only %d segments", n)
	}
	r.close()
	p = r.open()
	check(p)
	if m := p.Marks(); m != (Marks{0, 100, 100, 100, 0}) {
		t.Fatalf("%+v", m)
	}
	r.close()
}
