package partition

import (
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/producer"
)

// gate holds syncs of log files back while it is shut.
type gate struct {
	mu      sync.Mutex
	pass    chan struct{}
	arrived chan struct{} // gets one for every sync that comes to the gate
}

func newGate(f *vfs.Faults) *gate {
	g := &gate{pass: make(chan struct{}), arrived: make(chan struct{}, 1000)}
	close(g.pass)
	f.OnOp(func(op vfs.Op) {
		if op.Kind != vfs.OpSync || !strings.HasSuffix(op.Path, ".log") && !strings.Contains(op.Path, flush.CarryName) {
			return
		}
		g.mu.Lock()
		pass := g.pass
		g.mu.Unlock()
		g.arrived <- struct{}{}
		<-pass
	})
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	g.pass = make(chan struct{})
	g.mu.Unlock()
}

// one lets one sync through.
func (g *gate) one() { g.pass <- struct{}{} }

func (g *gate) release() { close(g.pass) }

func code(err error) int16 {
	var e interface{ ErrorCode() int16 }
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return -1
}

// TestNothingIsSeenBeforeItIsDurable holds the sync back: neither watermark moves, nobody is answered, also not the retry of a
// batch whose first attempt is under way (P06), and no reader sees anything.
func TestNothingIsSeenBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	faults := vfs.WithFaults(vfs.NewMem())
	g := newGate(faults)
	r := newRig(t, faults, commitlog.Config{})
	p := r.open()
	s := &sender{id: 7, txn: true}
	r.append(s.batch(t, 1, "first"))
	g.shut()

	advanced := make(chan Marks, 10)
	defer p.OnAdvance(func() { advanced <- p.Marks() })()
	second := s.batch(t, 2, "second")
	var original, duplicate, marker atomic.Bool
	a, err := p.Append(slices.Clone(second), AppendOptions{RequestVersion: 12})
	if err != nil {
		t.Fatal(err)
	}
	p.Await(a.LastOffset, func(error) { original.Store(true) })
	d, err := p.Append(slices.Clone(second), AppendOptions{RequestVersion: 12})
	if err != nil || !d.Duplicate || d.BaseOffset != a.BaseOffset {
		t.Fatalf("%+v, %v", d, err)
	}
	p.Await(d.LastOffset, func(error) { duplicate.Store(true) })
	m, err := p.AppendMarker(producer.Marker{ProducerID: 7, Epoch: 1, Commit: true, TxnVersion: 2})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	p.Await(m.LastOffset, func(err error) { marker.Store(true); done <- err })

	if got := p.Marks(); got != (Marks{0, 0, 1, 3, 0}) {
		t.Fatalf("before the sync: %+v", got)
	}
	if original.Load() || duplicate.Load() || marker.Load() || len(advanced) > 0 {
		t.Fatal("somebody was told before the sync")
	}
	if have := records(t, p, 0, 1<<20, false); len(have) != 1 {
		t.Fatalf("readers see %v", have)
	}
	g.release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !original.Load() || !duplicate.Load() {
		t.Fatal("earlier offsets are told first")
	}
	var last Marks
	for last.HighWatermark < 3 {
		last = <-advanced
	}
	if last != (Marks{0, 3, 3, 3, 0}) {
		t.Fatalf("after the sync: %+v", last)
	}
	r.close()
}

// TestUndecidedUntilTheMarkerIsDurable: a marker that is appended, but not durable, decides nothing for readers.
func TestUndecidedUntilTheMarkerIsDurable(t *testing.T) {
	t.Parallel()
	faults := vfs.WithFaults(vfs.NewMem())
	g := newGate(faults)
	r := newRig(t, faults, commitlog.Config{})
	p := r.open()
	s := &sender{id: 7, txn: true}
	r.append(s.batch(t, 1, "a", "b"))
	r.append(plain.batch(t, 1, "c"))
	g.shut()
	for len(g.arrived) > 0 {
		<-g.arrived
	}
	advanced := make(chan struct{}, 10)
	defer p.OnAdvance(func() { advanced <- struct{}{} })()
	d, err := p.Append(plain.batch(t, 1, "d"), AppendOptions{RequestVersion: 12})
	if err != nil {
		t.Fatal(err)
	}
	<-g.arrived // the flush that has d, and not the marker
	m, err := p.AppendMarker(producer.Marker{ProducerID: 7, Epoch: 1, TxnVersion: 2})
	if err != nil {
		t.Fatal(err)
	}
	g.one()
	<-advanced
	if got := p.Marks(); got.LastStable != 0 || got.HighWatermark < d.LastOffset+1 || got.HighWatermark > m.LastOffset {
		t.Fatalf("%+v", got)
	}
	if have := committed(t, p, 0, 1<<20); len(have) != 0 {
		t.Fatalf("read_committed sees %v", have)
	}
	g.release()
	if err := await(p, m.LastOffset); err != nil {
		t.Fatal(err)
	}
	if have := committed(t, p, 0, 1<<20); len(have) != 2 || have[0].value != "c" {
		t.Fatalf("after the abort read_committed sees %v", have)
	}
	r.close()
}

func TestErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), commitlog.Config{SegmentBytes: 5000, MaxMessageBytes: 4000})
	p := r.open()
	txn, idem := &sender{id: 1, txn: true}, &sender{id: 2}
	r.append(idem.batch(t, 1, "x"))
	now := r.clock.Now().UnixMilli()
	big := strings.Repeat("v", 4500)
	client := AppendOptions{RequestVersion: 12}
	for _, c := range []struct {
		name  string
		bytes []byte
		o     AppendOptions
		want  int16
	}{
		{"garbage", []byte("no batch at all, by any reading of it"), client, record.CodeCorruptMessage},
		{"nothing", nil, client, record.CodeInvalidRecord},
		{"too large", plain.batch(t, now, big), client, record.CodeMessageTooLarge},
		{"larger than a segment", plain.batch(t, now, big, big), client, record.CodeMessageTooLarge},
		{"from the future", plain.batch(t, now+2*3600*1000, "x"), client, record.CodeInvalidTimestamp},
		{"gap in the sequence", (&sender{id: 2, sequence: 5}).batch(t, now, "x"), client, producer.CodeOutOfOrderSequence},
		{"fenced", (&sender{id: 2, epoch: -1}).batch(t, now, "x"), client, producer.CodeInvalidProducerEpoch},
		{"no transaction, old client", txn.batch(t, now, "x"), AppendOptions{RequestVersion: 10}, CodeInvalidTxnState},
		{"no transaction", txn.batch(t, now, "x"), AppendOptions{RequestVersion: 11}, CodeTransactionAbortable},
		{"another's guard", (&sender{id: 1, txn: true}).batch(t, now, "x"), AppendOptions{RequestVersion: 12, Guard: p.BeginVerify(99, 0, 0)}, CodeTransactionAbortable},
		{"a stale guard", txn.batch(t, now, "x"), AppendOptions{Origin: OriginCoordinator, Guard: Guard{77}}, CodeInvalidTxnState},
	} {
		before := p.Marks()
		a, err := p.Append(c.bytes, c.o)
		if got := code(err); got != c.want {
			t.Errorf("%s: code %d (%v), want %d; %+v", c.name, got, err, c.want, a)
		}
		if after := p.Marks(); after.LogEnd != before.LogEnd {
			t.Errorf("%s: something was appended", c.name)
		}
	}
	p.Reconfigure(commitlog.Config{SegmentBytes: 1000})
	if _, err := p.Append(plain.batch(t, now, big), client); code(err) != CodeRecordListTooLarge {
		t.Errorf("larger than a segment: %v", err)
	}
	for _, c := range []struct {
		offset int64
		want   int16
	}{{-1, CodeOffsetOutOfRange}, {0, -1}, {1, -1}, {2, CodeOffsetOutOfRange}} { // F05: the end itself waits
		read, err := p.Read(ReadOptions{Offset: c.offset, MaxBytes: 100})
		if code(err) != c.want {
			t.Errorf("read at %d: %v", c.offset, err)
		}
		if err == nil {
			read.Release()
		}
	}
	if _, err := p.DeleteRecords(5); code(err) != CodeOffsetOutOfRange {
		t.Errorf("delete beyond the end: %v", err)
	}
	r.close()
	if _, err := p.Append(plain.batch(t, now, "x"), client); code(err) != CodeNotLeaderOrFollower {
		t.Errorf("append to a closed partition: %v", err)
	}
	if _, err := p.Read(ReadOptions{}); code(err) != CodeNotLeaderOrFollower {
		t.Errorf("read of a closed partition: %v", err)
	}
	if err := await(p, 100); code(err) != CodeNotLeaderOrFollower {
		t.Errorf("await on a closed partition: %v", err)
	}
}

// TestNoAbortSlipsBetweenVerificationAndAppend is T19: whatever the interleaving, a batch whose verification began before the
// marker opens no transaction behind it. The markers are those of transaction version 1, which carry the data's own epoch, so
// that only the guard is in the way of a late batch.
func TestNoAbortSlipsBetweenVerificationAndAppend(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), commitlog.Config{})
	p := r.open()
	before, behind := 0, 0
	for i := range int64(3000) {
		b := (&sender{id: i, txn: true}).batch(t, 1, "late")
		guard := p.BeginVerify(i, 0, 0)
		var both sync.WaitGroup
		var data, marker Appended
		var err error
		both.Go(func() { data, err = p.Append(b, AppendOptions{RequestVersion: 12, Guard: guard}) })
		both.Go(func() {
			if i%2 == 0 {
				runtime.Gosched()
			}
			var merr error
			if marker, merr = p.AppendMarker(producer.Marker{ProducerID: i, TxnVersion: 1}); merr != nil {
				t.Error(merr)
			}
		})
		both.Wait()
		switch {
		case err == nil && data.LastOffset > marker.LastOffset:
			t.Fatalf("round %d: a batch at %d opened a transaction behind its marker at %d", i, data.LastOffset, marker.LastOffset)
		case err == nil:
			before++
		case code(err) != CodeTransactionAbortable:
			t.Fatal(err)
		default:
			behind++
		}
	}
	if err := await(p, p.Marks().LogEnd-1); err != nil {
		t.Fatal(err)
	}
	if m := p.Marks(); m.LastStable != m.LogEnd {
		t.Fatalf("at rest: %+v", m)
	}
	if before == 0 || behind == 0 {
		t.Fatalf("no race: %d before, %d behind the marker", before, behind)
	}
	r.close()
}

func TestGuards(t *testing.T) {
	t.Parallel()
	var g guards
	a := g.begin(1, 0, 0, 0)
	if g.begin(1, 0, 0, 0) != a || !g.holds(a, 1, 0) || g.holds(a, 2, 0) || g.holds(a, 1, 1) || g.holds(Guard{}, 1, 0) {
		t.Fatal("one guard for a producer and epoch, and only for them")
	}
	b := g.begin(1, 1, 0, 0)
	if b == a || g.holds(a, 1, 0) || !g.holds(b, 1, 1) {
		t.Fatal("a newer epoch takes over")
	}
	if g.begin(1, 0, 0, 0) != (Guard{}) {
		t.Fatal("an older one gets nothing")
	}
	g.drop(1)
	if g.holds(b, 1, 1) || g.begin(1, 1, 0, 0) == b {
		t.Fatal("a marker ends it")
	}
	for id := range int64(5000) {
		g.begin(id, 0, 0, id*1000)
	}
	if n := len(g.byProducer); n > 2500 {
		t.Fatalf("%d guards are remembered", n)
	}
}

// TestLogAppendTime: the broker's clock is in the batch, in the answer, and rises with the offsets.
func TestLogAppendTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), commitlog.Config{LogAppendTime: true})
	p := r.open()
	for range 3 {
		r.clock.Advance(time.Second)
		a := r.append(plain.batch(t, 5, "x", "y"))
		if now := r.clock.Now().UnixMilli(); a.LogAppendTimeMs != now {
			t.Fatalf("%+v at %d", a, now)
		}
		have := records(t, p, a.BaseOffset, 1<<20, false)
		if len(have) != 2 || have[0].ts != a.LogAppendTimeMs || have[1].ts != a.LogAppendTimeMs {
			t.Fatalf("%v", have)
		}
	}
	r.close()
}

// TestFollower: a follower refuses clients and holds its high watermark at the leader's word and at its own disk.
func TestFollower(t *testing.T) {
	t.Parallel()
	r := newRig(t, vfs.NewMem(), commitlog.Config{})
	p := r.open()
	r.append(plain.batch(t, 1, "x", "y"))
	p.BecomeFollower(Follower{Epoch: 3, LeaderHigh: 1})
	if _, err := p.Append(plain.batch(t, 1, "x"), AppendOptions{RequestVersion: 12}); code(err) != CodeNotLeaderOrFollower {
		t.Fatalf("append: %v", err)
	}
	if _, err := p.AppendMarker(producer.Marker{ProducerID: 1}); code(err) != CodeNotLeaderOrFollower {
		t.Fatalf("marker: %v", err)
	}
	if m := p.Marks(); m.HighWatermark != 2 || m.LeaderEpoch != 3 {
		t.Fatalf("a watermark never goes back: %+v", m)
	}
	p.BecomeLeader(Leader{Epoch: 4})
	a := r.append(plain.batch(t, 1, "z"))
	if epoch, end := p.EpochEnd(4); epoch != 4 || end != 3 || p.EpochAt(a.BaseOffset) != 4 {
		t.Fatalf("epoch %d ends at %d", epoch, end)
	}
	if epoch, end := p.EpochEnd(3); epoch != 0 || end != 2 {
		t.Fatalf("epoch 3 wrote nothing; the one before is %d, up to %d", epoch, end)
	}
	r.close()
}

// TestFailedWrites is S21 and P15: a full or failing disk refuses the append and leaves no half batch; reads go on, and so do
// appends once there is room, without a restart.
func TestFailedWrites(t *testing.T) {
	t.Parallel()
	for _, rule := range []vfs.Rule{
		{Kinds: vfs.OpWrite, Path: "*.log", Err: syscall.ENOSPC, Short: 20},
		{Kinds: vfs.OpWrite, Path: "*.log", Err: syscall.EIO},
		{Kinds: vfs.OpCreate, Err: syscall.ENOSPC},
	} {
		mem := vfs.NewMem()
		faults := vfs.WithFaults(mem)
		r := newRig(t, faults, tiny)
		p := r.open()
		log := &lockedText{}
		p.logger = slog.New(slog.NewTextHandler(log, nil))
		s := &sender{id: 1}
		for range 10 {
			r.append(s.batch(t, 1, strings.Repeat("x", 300)))
		}
		heal := faults.Add(rule)
		end, refused := p.Marks().LogEnd, 0
		for range 20 {
			was := *s
			_, err := p.Append(s.batch(t, 1, strings.Repeat("y", 300)), AppendOptions{RequestVersion: 12})
			if err == nil {
				continue // no new file was needed yet
			}
			refused++
			*s = was
			if code(err) != CodeKafkaStorageError || !errors.Is(err, rule.Err) {
				t.Fatalf("%+v: %v", rule, err)
			}
		}
		if refused == 0 {
			t.Fatalf("%+v: nothing was refused", rule)
		}
		if size := sizeOfLogs(t, mem); size != p.log.End().Bytes+sealedBytes(t, p, mem) {
			t.Fatalf("%+v: the files have %d bytes, half a batch is left", rule, size)
		}
		if n := len(records(t, p, 0, 1<<20, false)); int64(n) < end {
			t.Fatalf("%+v: %d of %d records can be read", rule, n, end)
		}
		if n := log.count("writes to the partition fail"); n != 1 || log.count("level=ERROR") != 1 {
			t.Fatalf("%+v: %d refusals, the log says %d times that writes fail:\n%s", rule, refused, n, log)
		}
		heal()
		r.append(s.batch(t, 1, "there is room again"+strings.Repeat("z", 300)))
		a := r.append(s.batch(t, 1, "there is room again"))
		if n := log.count("writes to the partition work again"); n != 1 || log.count("level=ERROR") != 1 {
			t.Fatalf("%+v: the log says %d times that writes work again:\n%s", rule, n, log)
		}
		r.close()
		p = r.open()
		if m := p.Marks(); m.LogEnd != a.LastOffset+1 {
			t.Fatalf("%+v: after reopening %+v", rule, m)
		}
		r.close()
	}
}

// lockedText is a log that may be read while it is written.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lockedText) count(part string) int { return strings.Count(l.String(), part) }

// Small batches that still fit into the rest of a block do not end the refusal of larger ones, nor does each larger one begin
// a new one.
func TestRefusalsAreToldOnce(t *testing.T) {
	var r refusals
	if !r.refused(1000, 0) || r.refused(2000, 10) || r.refused(900, 20) {
		t.Error("only the first refusal is to be told")
	}
	if r.over(899, 30) || r.refused(5000, 40) || r.over(10, 40+refusalPauseMs-1) {
		t.Error("a smaller batch proves nothing")
	}
	if !r.over(10, 40+refusalPauseMs) || !r.refused(1000, 70_000) || !r.over(1000, 70_001) {
		t.Error("a batch as large, or a minute of quiet, ends it")
	}
}

func sizeOfLogs(t *testing.T, fsys vfs.FS) (size int64) {
	t.Helper()
	names, err := fsys.List("data/t-0")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			info, err := fsys.Stat("data/t-0/" + name)
			if err != nil {
				t.Fatal(err)
			}
			size += info.Size
		}
	}
	return size
}

// sealedBytes is the size of all batches but those of the active segment.
func sealedBytes(t *testing.T, p *Partition, fsys vfs.FS) (size int64) {
	t.Helper()
	active := p.log.End().Segment
	if err := p.Replay(func(b record.Batch) error {
		if b.BaseOffset() < active {
			size += int64(len(b))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return size
}

// TestFailedSync: an fsync that failed takes the partition offline; the file is never asked again, nobody is told that his
// batch is durable, and after a restart the log is what the disk has.
func TestFailedSync(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	faults := vfs.WithFaults(mem)
	r := newRig(t, faults, commitlog.Config{})
	r.alone = true
	p := r.open()
	r.append(plain.batch(t, 1, "durable"))
	remove := faults.Add(vfs.Rule{Kinds: vfs.OpSync, Path: "*.log", Nth: 1, Err: syscall.EIO})
	ended := make(chan struct{}, 10)
	p.OnAdvance(func() { ended <- struct{}{} })
	a, err := p.Append(plain.batch(t, 1, "lost"), AppendOptions{RequestVersion: 12})
	if err != nil {
		t.Fatal(err)
	}
	if err := await(p, a.LastOffset); code(err) != CodeKafkaStorageError || !errors.Is(err, syscall.EIO) {
		t.Fatalf("await: %v", err)
	}
	<-ended
	remove()
	syncs := 0
	faults.OnOp(func(op vfs.Op) {
		if op.Kind == vfs.OpSync && strings.HasSuffix(op.Path, ".log") {
			syncs++
		}
	})
	if _, err := p.Append(plain.batch(t, 1, "x"), AppendOptions{RequestVersion: 12}); code(err) != CodeKafkaStorageError {
		t.Fatalf("append: %v", err)
	}
	if err := await(p, a.LastOffset); code(err) != CodeKafkaStorageError {
		t.Fatalf("await: %v", err)
	}
	if _, err := p.Read(ReadOptions{}); code(err) != CodeKafkaStorageError {
		t.Fatalf("read: %v", err)
	}
	if m := p.Marks(); m.HighWatermark != 1 {
		t.Fatalf("%+v", m)
	}
	if err := p.Close(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("close says nothing: %v", err)
	}
	if syncs != 0 {
		t.Fatalf("the file was asked %d times more", syncs)
	}
	faults.OnOp(nil)
	r.fs = mem.CrashClone(1)
	p = r.open()
	if have := records(t, p, 0, 1<<20, false); have[0].value != "durable" {
		t.Fatalf("%v", have)
	}
	r.close()
}
