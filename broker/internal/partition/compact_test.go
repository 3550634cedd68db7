package partition

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/compact"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/core/vfs"
	"github.com/millrace/millrace/txn/isolation"
	"github.com/millrace/millrace/txn/producer"
)

// compacting is a log of tiny segments that is compacted at every chance.
func compacting(deleteRetentionMs int64) commitlog.Config {
	return commitlog.Config{
		SegmentBytes: 600, IndexIntervalBytes: 100, Compacted: true,
		Cleaning: commitlog.Cleaning{DeleteRetentionMs: deleteRetentionMs},
	}
}

// keyed is a record of a compacted log; a nil value is a tombstone.
type keyed struct {
	offset int64
	key    string
	value  *string
}

func (k keyed) String() string {
	if k.value == nil {
		return fmt.Sprintf("%d:%s deleted", k.offset, k.key)
	}
	return fmt.Sprintf("%d:%s=%s", k.offset, k.key, *k.value)
}

// readKeyed reads as a read_committed consumer does, in small fetches, from an offset to the last stable offset. It checks that every
// fetch moves on.
func readKeyed(t testing.TB, p *Partition, from int64) (out []keyed) {
	t.Helper()
	for {
		r, err := p.Read(ReadOptions{Offset: from, MaxBytes: 700, Committed: true, AtLeastOne: true})
		if err != nil {
			t.Fatal(err)
		}
		if r.Bytes == 0 {
			r.Release()
			return out
		}
		filter := isolation.NewFilter(slices.Clone(r.Aborted))
		for b, err := range record.Batches(bytesOf(t, r)) {
			if err == nil {
				err = b.CheckCRC()
			}
			hidden := false
			if err == nil {
				hidden, err = filter.Hides(b)
			}
			if err != nil || b.LastOffset() < from {
				t.Fatalf("at %d: batch %d to %d: %v", from, b.BaseOffset(), b.LastOffset(), err)
			}
			for rec, err := range b.Records(nil) {
				if err != nil {
					t.Fatal(err)
				}
				if hidden || rec.Offset < from {
					continue
				}
				k := keyed{offset: rec.Offset, key: string(rec.Key)}
				if rec.Value != nil {
					v := string(rec.Value)
					k.value = &v
				}
				out = append(out, k)
			}
			from = b.LastOffset() + 1
		}
		r.Release()
	}
}

// store is the dumb model of a compacted log: everything that was ever appended, and what became of it.
type store struct {
	*rig
	rng     *rand.Rand
	mem     *vfs.Mem
	log     []keyed          // by offset; a marker has no key
	owner   map[int64]int64  // open transactions' records: the producer, by offset
	hidden  map[int64]bool   // records of aborted transactions, by offset
	senders []*sender        //
	resend  map[int64][]byte // the last batch of idempotent producers
	bases   map[int64]int64  // where it went
	n       int
	keys    int
}

func newStore(t testing.TB, mem *vfs.Mem, fsys vfs.FS, c commitlog.Config, seed uint64) *store {
	s := &store{
		rig: newRig(t, fsys, c), rng: rand.New(rand.NewPCG(seed, 7)), mem: mem,
		owner: map[int64]int64{}, hidden: map[int64]bool{}, resend: map[int64][]byte{}, bases: map[int64]int64{}, keys: 12,
	}
	for id := range int64(6) {
		s.senders = append(s.senders, &sender{id: id, txn: id%2 == 1, codec: record.Codec(id % 5)})
	}
	s.senders = append(s.senders, plain)
	return s
}

// batchOf makes a batch of 1 to 4 keyed records.
func (s *store) batchOf(p *sender) (batch []byte, records []keyed) {
	var b record.Builder
	o := record.BuilderOptions{Codec: p.codec, Transactional: p.txn}
	n := 1 + s.rng.IntN(4)
	if p.id >= 0 {
		o.Producer = &record.Producer{ID: p.id, Epoch: p.epoch, Sequence: p.sequence}
		p.sequence += int32(n)
	}
	b.Reset(o)
	for range n {
		k := keyed{key: fmt.Sprintf("k%d", s.rng.IntN(s.keys))}
		var value []byte
		if s.rng.IntN(4) > 0 {
			s.n++
			v := fmt.Sprintf("v%d %s", s.n, strings.Repeat("x", s.rng.IntN(80)))
			k.value, value = &v, []byte(v)
		}
		b.Append(s.now()+int64(s.rng.IntN(5)), []byte(k.key), value, nil)
		records = append(records, k)
	}
	out, err := b.Batch()
	if err != nil {
		s.t.Fatal(err)
	}
	return append([]byte(nil), out...), records
}

func (s *store) produce() {
	p := s.senders[s.rng.IntN(len(s.senders))]
	batch, records := s.batchOf(p)
	a := s.append(batch)
	if a.BaseOffset != int64(len(s.log)) || a.Duplicate {
		s.t.Fatalf("%+v, want offset %d", a, len(s.log))
	}
	for i, k := range records {
		k.offset = a.BaseOffset + int64(i)
		s.log = append(s.log, k)
		if p.txn {
			s.owner[k.offset] = p.id
		}
	}
	if p.id >= 0 && !p.txn {
		s.resend[p.id], s.bases[p.id] = batch, a.BaseOffset
	}
}

// decide ends a transaction that is open, if there is one.
func (s *store) decide() {
	open := slices.Sorted(maps.Values(s.owner))
	if len(open) == 0 {
		return
	}
	id, commit := open[s.rng.IntN(len(open))], s.rng.IntN(2) == 0
	p := s.senders[id]
	p.epoch, p.sequence = p.epoch+1, 0
	a, err := s.p.AppendMarker(producer.Marker{ProducerID: id, Epoch: p.epoch, Commit: commit, TxnVersion: 2})
	if err == nil {
		err = await(s.p, a.LastOffset)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.log = append(s.log, keyed{offset: a.BaseOffset})
	for offset, owner := range s.owner {
		if owner == id {
			delete(s.owner, offset)
			s.hidden[offset] = !commit
		}
	}
}

// stable is where the model's last stable offset is.
func (s *store) stable() int64 {
	stable := int64(len(s.log))
	for offset := range s.owner {
		stable = min(stable, offset)
	}
	return stable
}

// latest is what a reader has to find: the last visible record of each key, tombstones left out.
func latest(records []keyed) map[string]string {
	out := map[string]string{}
	for _, k := range records {
		if delete(out, k.key); k.value != nil {
			out[k.key] = fmt.Sprintf("%d:%s", k.offset, *k.value)
		}
	}
	return out
}

// check compares the partition with the model.
func (s *store) check(what string) {
	s.t.Helper()
	start, stable := s.p.Marks().LogStart, s.p.Marks().LastStable
	if stable != s.stable() {
		s.t.Fatalf("%s: last stable offset %d, want %d", what, stable, s.stable())
	}
	var visible []keyed
	byOffset := map[int64]string{}
	for _, k := range s.log[start:stable] {
		if k.key != "" && !s.hidden[k.offset] {
			visible = append(visible, k)
			byOffset[k.offset] = k.String()
		}
	}
	got := readKeyed(s.t, s.p, start)
	for _, k := range got {
		if byOffset[k.offset] != k.String() {
			s.t.Fatalf("%s: read %v, written was %q", what, k, byOffset[k.offset])
		}
	}
	if want := latest(visible); !maps.Equal(latest(got), want) {
		s.t.Fatalf("%s: a reader finds\n%v, want\n%v", what, latest(got), want)
	}
	from := start + s.rng.Int64N(stable-start+1)
	tail := slices.DeleteFunc(slices.Clone(got), func(k keyed) bool { return k.offset < from })
	if part := readKeyed(s.t, s.p, from); fmt.Sprint(part) != fmt.Sprint(tail) {
		s.t.Fatalf("%s: from offset %d\n%v, want\n%v", what, from, part, tail)
	}
	if err := checkEpochs(s.p); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// duplicates is P12 and C06: the last batch of every producer is recognised, whatever compaction has left of it.
func (s *store) duplicates() {
	s.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(s.resend)) {
		a, err := s.p.Append(slices.Clone(s.resend[id]), AppendOptions{RequestVersion: 12})
		if err != nil || !a.Duplicate || a.BaseOffset != s.bases[id] {
			s.t.Fatalf("producer %d sends its last batch again: %+v, %v, want a duplicate at %d", id, a, err, s.bases[id])
		}
	}
}

func (s *store) compact(table int) Compacted {
	s.t.Helper()
	s.synced()
	c, err := s.p.Compact(Compaction{NowMs: s.now(), TableBytes: table})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *store) step() {
	switch n := s.rng.IntN(100); {
	case n < 60:
		s.produce()
	case n < 80:
		s.decide()
	case n < 92:
		s.compact(1 << 16)
		s.check("compacted")
	case n < 95:
		s.clock.Advance(time.Duration(s.rng.IntN(3000)) * time.Millisecond)
	case n < 97:
		m := s.p.Marks()
		if _, err := s.p.DeleteRecords(m.LogStart + s.rng.Int64N(min(20, m.LastStable-m.LogStart)+1)); err != nil {
			s.t.Fatal(err)
		}
	case n < 98:
		s.retain()
	default:
		s.close()
		s.open()
		s.check("reopened")
		s.duplicates()
	}
	s.clock.Advance(time.Duration(s.rng.IntN(100)) * time.Millisecond)
}

// TestCompactionModel is C01, C02, C03, C09, C12 and P12: whatever compaction does between random work, readers of every offset find
// the latest value of each key, and nothing that was never committed.
func TestCompactionModel(t *testing.T) {
	t.Parallel()
	steps, seeds := 400, 6
	if testing.Short() {
		steps, seeds = 200, 2
	}
	first := seedtest.New(t)
	for i := range seeds {
		seed := first + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			mem := vfs.NewMem()
			s := newStore(t, mem, mem, compacting(1000), seed)
			s.open()
			for range steps {
				s.step()
			}
			for range s.senders { // decide all, and clean until nothing is left to do
				s.decide()
			}
			s.quiet()
			s.check("at the end")
			s.duplicates()
			s.close()
			// Without the snapshots all is derived from what compaction has left.
			for _, name := range s.names() {
				if strings.HasSuffix(name, ".snapshot") {
					if err := mem.Remove(dir + "/" + name); err != nil {
						t.Fatal(err)
					}
				}
			}
			s.open()
			s.check("replayed")
			if s.p.Marks().LogStart == 0 {
				s.duplicates()
			}
			s.close()
		})
	}
}

// quiet is C13: rounds on an idle log come to an end, and then no file is touched.
func (s *store) quiet() {
	s.t.Helper()
	for range 20 {
		s.compact(1 << 16)
		s.clock.Advance(2 * time.Second)
	}
	progress := s.p.log.Progress()
	if ratio, due, err := s.p.Dirtiness(s.now() + 1e9); due || err != nil || ratio > 0 {
		s.t.Fatalf("an idle log is %v dirty, due %v, %v, %+v", ratio, due, err, progress)
	}
}

// TestCompactionPowerLoss is S04 and S19: a power cut at every file operation of compaction and retention leaves a log that opens, that
// shows the same, and that has no leftovers.
func TestCompactionPowerLoss(t *testing.T) {
	t.Parallel()
	seed := seedtest.New(t)
	mem := vfs.NewMem()
	faults := vfs.WithFaults(mem)
	config := compacting(500)
	config.Deletes, config.RetentionMs, config.RetentionBytes, config.FileDeleteDelayMs = true, -1, 3000, 1000
	s := newStore(t, mem, faults, config, seed)
	s.open()
	rng := rand.New(rand.NewPCG(seed, 3))
	cuts := 0
	rounds, share := 4, 8 // of the operations, one in share is cut
	if os.Getenv("MILLRACE_SOAK") != "" {
		rounds, share = 6, 1
	}
	for range rounds {
		for range 40 {
			s.produce()
			if s.rng.IntN(3) == 0 {
				s.decide()
			}
		}
		s.synced()
		type cut struct {
			op   vfs.Op
			seed uint64
			disk *vfs.Mem
		}
		var taken []cut
		faults.OnOp(func(op vfs.Op) {
			if op.Kind&vfs.OpChanges != 0 && rng.IntN(share) == 0 {
				one := rng.Uint64()
				taken = append(taken, cut{op, one, mem.CrashClone(one)})
			}
		})
		s.compact(1 << 15)
		switch m := s.p.Marks(); s.rng.IntN(3) {
		case 0:
			if _, err := s.p.DeleteRecords(m.LogStart + (m.LastStable-m.LogStart)/3); err != nil {
				t.Fatal(err)
			}
		case 1:
			s.retain()
		}
		faults.OnOp(nil)
		s.check("before the cuts")
		for _, c := range taken {
			after := *s
			after.rig = newRig(t, c.disk, s.config)
			after.clock, after.mem = s.clock, c.disk
			what := fmt.Sprintf("power cut at %v %s, seed %d", c.op.Kind, c.op.Path, c.seed)
			if err := after.tryOpen(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			after.check(what)
			after.leftovers(what)
			after.compact(1 << 16)
			after.check(what + ", and a round")
			after.duplicates()
			after.close()
		}
		cuts += len(taken)
		s.clock.Advance(time.Second)
	}
	s.close()
	if t.Logf("%d power cuts", cuts); cuts < 50 {
		t.Fatalf("only %d", cuts)
	}
}

func (s *store) names() []string {
	s.t.Helper()
	names, err := s.mem.List(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	return names
}

// leftovers looks for files of unfinished work.
func (s *store) leftovers(what string) {
	s.t.Helper()
	for _, name := range s.names() {
		for _, suffix := range []string{".cleaned", ".swap", ".tmp", ".deleted"} {
			if strings.HasSuffix(name, suffix) {
				s.t.Fatalf("%s: %s is left", what, name)
			}
		}
	}
}

// TestCompactionFaults lets every file operation of a round fail in turn. The log goes on, a later round heals it, and a sync of a
// folder that failed takes the partition offline until it is opened again.
func TestCompactionFaults(t *testing.T) {
	t.Parallel()
	const seed = 11
	stride := 7 // each run begins at another operation, so that runs together fail them all
	if os.Getenv("MILLRACE_SOAK") != "" {
		stride = 1
	}
	for at := 1 + rand.IntN(stride); ; at += stride {
		mem := vfs.NewMem()
		faults := vfs.WithFaults(mem)
		s := newStore(t, mem, faults, compacting(500), seed)
		s.open()
		for range 60 {
			s.produce()
			if s.rng.IntN(3) == 0 {
				s.decide()
			}
		}
		s.synced()
		remove := faults.Add(vfs.Rule{Nth: at, Err: errors.New("a fault of the disk")})
		before := faults.Ops()
		_, err := s.p.Compact(Compaction{NowMs: s.now(), TableBytes: 1 << 16})
		ops := faults.Ops() - before
		remove()
		if s.p.failed.Load() != nil {
			s.p.Flush()
			s.rig.fs = mem.Clone()
			s.mem = s.rig.fs.(*vfs.Mem)
			s.open()
		}
		what := fmt.Sprintf("operation %d failed (%v)", at, err)
		s.check(what)
		s.compact(1 << 16)
		s.check(what + ", then a round")
		s.close()
		s.leftovers(what)
		s.open()
		s.check(what + ", then opened")
		s.close()
		if int64(at) > ops {
			if at < 20 {
				t.Fatalf("only %d operations", at)
			}
			return
		}
	}
}

// TestSmallTable is C10 and C04: with more keys than the table takes, rounds end in the middle of segments and transactions, and come
// to the same end.
func TestSmallTable(t *testing.T) {
	t.Parallel()
	seed := seedtest.New(t)
	mem := vfs.NewMem()
	s := newStore(t, mem, mem, compacting(0), seed)
	s.keys = 1500
	s.open()
	for range 1500 {
		if s.produce(); s.rng.IntN(4) == 0 {
			s.decide()
		}
	}
	for range s.senders {
		s.decide()
	}
	rounds := 0
	for more := true; more; rounds++ {
		more = s.compact(compact.MinTableBytes).More
		s.check(fmt.Sprintf("after round %d", rounds))
		if rounds%2 == 0 {
			s.close()
			s.open()
		}
		if rounds > 100 {
			t.Fatal("no end")
		}
	}
	if rounds < 3 {
		t.Fatalf("only %d rounds", rounds)
	}
	seen := map[string]bool{}
	sealed := s.p.log.Floor(s.p.Marks().LogEnd)
	for _, k := range readKeyed(t, s.p, s.p.Marks().LogStart) {
		if k.offset < sealed && seen[k.key] {
			t.Fatalf("%v is the second of its key", k)
		}
		seen[k.key] = true
	}
	s.close()
}

// TestLargeBatchIsCompacted is C07: a batch that the settings of today would refuse is read and written like any other.
func TestLargeBatchIsCompacted(t *testing.T) {
	t.Parallel()
	c := compacting(0)
	c.SegmentBytes = 5000
	r := newRig(t, vfs.NewMem(), c)
	p := r.open()
	r.append(plain.batch(t, 1, strings.Repeat("x", 4000), "last but one"))
	c.SegmentBytes, c.MaxMessageBytes = 300, 200
	p.Reconfigure(c)
	r.append(plain.batch(t, 2, "last"))
	r.append(plain.batch(t, 3, strings.Repeat("y", 80)))
	r.append(plain.batch(t, 4, strings.Repeat("z", 80)))
	r.synced()
	done, err := p.Compact(Compaction{NowMs: r.now(), TableBytes: 1 << 16})
	if err != nil || done.Counts.RecordsOut >= done.Counts.RecordsIn {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := records(t, p, 0, 1000, false); len(got) > 2 {
		t.Fatalf("%d records of one key are left", len(got))
	}
	r.close()
}
