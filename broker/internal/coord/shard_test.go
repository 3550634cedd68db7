package coord

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/producer"
)

// words is a small machine: its state is the concatenation of all records, with
// markers as ! and ?. At deadline it appends "tick". A parked caller is resumed by
// the record "go".
type words struct {
	state    strings.Builder
	deadline int64
	parked   Token
	goes     bool
	refuse   string // a record that can not be replayed
}

func (w *words) Replay(r Replayed) error {
	if w.refuse != "" && string(r.Value) == w.refuse {
		return errors.New("refused")
	}
	fmt.Fprintf(&w.state, "%s.", r.Value)
	switch string(r.Value) {
	case "tick":
		w.deadline = 0
	case "go":
		w.goes = true
	}
	return nil
}

func (w *words) ReplayMarker(m record.Marker, offset int64) error {
	w.state.WriteString(map[bool]string{true: "!", false: "?"}[m.Commit])
	return nil
}

func (w *words) Tick(nowMs int64) Output {
	if w.deadline == 0 || nowMs < w.deadline {
		return Output{}
	}
	return Output{Records: say("tick")}
}

func (w *words) NextDeadline() (int64, bool) { return w.deadline, w.deadline != 0 }

func (w *words) Resume(int64) (Output, bool) {
	if !w.goes || w.parked == 0 {
		return Output{}, false
	}
	out := Output{Records: say("resumed"), Replies: []Reply{{To: w.parked, Response: "resumed"}}}
	w.parked = 0
	return out, true
}

func (w *words) Forget(to Token) {
	if w.parked == to {
		w.parked = 0
	}
}

func say(ws ...string) []Record {
	var rs []Record
	for _, w := range ws {
		rs = append(rs, Record{Key: []byte("k"), Value: []byte(w)})
	}
	return rs
}

// stage is a runtime with one shard over a fake log.
type stage struct {
	t       *testing.T
	rt      *Runtime[*words]
	s       *Shard[*words]
	clock   *clock.Manual
	effects chan any

	mu       sync.Mutex
	log      *fakeLog
	opened   int
	noOpen   error
	deadline int64 // of every new machine
}

func newStage(t *testing.T, log *fakeLog) *stage {
	st := &stage{t: t, log: log, clock: clock.NewManual(time.UnixMilli(1000)), effects: make(chan any, 100)}
	rt, err := NewRuntime(Options[*words]{
		Topic: "words", Partitions: 1, Clock: st.clock, MaxBatchBytes: 300,
		Open: func(int32) (Log, error) {
			st.mu.Lock()
			defer st.mu.Unlock()
			st.opened++
			return st.log, st.noOpen
		},
		New:    func(int32) *words { return &words{deadline: st.deadline} },
		Effect: func(_ *Shard[*words], e any) { st.effects <- e },
	})
	if err != nil {
		t.Fatal(err)
	}
	st.rt, st.s = rt, rt.Shard(0)
	t.Cleanup(rt.Close)
	return st
}

// start waits until the shard serves.
func (st *stage) start() *stage {
	st.t.Helper()
	st.rt.Start()
	st.serving()
	return st
}

func (st *stage) serving() {
	st.t.Helper()
	eventually(st.t, "shard serves", func() bool {
		st.s.mu.Lock()
		defer st.s.mu.Unlock()
		return st.s.state == serving
	})
}

// eventually waits for what a worker does on its own.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

// say appends words through a handler and returns the channel of its reply.
func (st *stage) say(ws ...string) chan any {
	return st.do(func(m *words, _ int64, to Token) Output {
		return Output{Records: say(ws...), Replies: []Reply{{To: to, Response: "said"}}}
	})
}

func (st *stage) do(f func(m *words, nowMs int64, to Token) Output) chan any {
	ch := make(chan any, 2)
	st.s.Do(func(r any) { ch <- r }, f)
	return ch
}

// state reads the machine's state without waiting for durability.
func (st *stage) state() string {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.s.machine.state.String()
}

func got(t *testing.T, ch chan any) any {
	t.Helper()
	select {
	case r := <-ch:
		return r
	case <-time.After(10 * time.Second):
		t.Fatal("no reply within 10 s")
		return nil
	}
}

func pending(t *testing.T, ch chan any) {
	t.Helper()
	select {
	case r := <-ch:
		t.Fatalf("replied %v before it is durable", r)
	default:
	}
}

func failure(t *testing.T, r any, code int16, lost bool) {
	t.Helper()
	if f, ok := r.(Failure); !ok || f.Code != code || f.Lost != lost {
		t.Fatalf("reply %v, want a failure with code %d, lost %t", r, code, lost)
	}
}

func TestReplyWaitsForDurability(t *testing.T) {
	st := newStage(t, &fakeLog{})
	failure(t, got(t, st.say("early")), CodeCoordinatorLoading, false)
	st.start()
	a := st.say("a", "b")
	read := st.do(func(m *words, _ int64, to Token) Output {
		return Output{Replies: []Reply{{To: to, Response: m.state.String()}}, Effects: []any{"effect"}}
	})
	pending(t, a)
	pending(t, read)
	if len(st.effects) > 0 {
		t.Fatal("an effect before it is durable")
	}
	st.log.sync()
	if r := got(t, a); r != "said" {
		t.Fatal(r)
	}
	if r := got(t, read); r != "a.b." {
		t.Fatalf("read %q", r)
	}
	if e := got(t, st.effects); e != "effect" {
		t.Fatal(e)
	}
	if n := len(st.log.batches); n != 1 || st.log.batches[0].Count() != 2 {
		t.Fatalf("%d batches for one output", n)
	}
}

func TestFailedAppendChangesNothing(t *testing.T) {
	st := newStage(t, &fakeLog{auto: true}).start()
	got(t, st.say("a"))
	st.log.refuse = errors.New("disk is full")
	var other Token
	parked := st.do(func(m *words, _ int64, to Token) Output { other = to; m.parked = to; return Output{} })
	r := st.do(func(m *words, _ int64, to Token) Output {
		return Output{Records: say("b"), Pending: []Token{other}, Effects: []any{"never"}}
	})
	failure(t, got(t, r), CodeCoordinatorNotAvailable, false)
	failure(t, got(t, parked), CodeCoordinatorNotAvailable, false)
	st.log.refuse = nil
	// The forgotten caller is not resumed.
	got(t, st.say("go"))
	if s := st.state(); s != "a.go." {
		t.Fatalf("state %q", s)
	}
	if len(st.effects) > 0 {
		t.Fatal("effect of an output that was not appended")
	}
	if len(parked) > 0 {
		t.Fatal("answered twice")
	}
}

func TestFailedSyncLoadsAgain(t *testing.T) {
	st := newStage(t, &fakeLog{}).start()
	a := st.say("a")
	st.log.sync()
	got(t, a)
	b := st.say("b")
	kept := st.do(func(m *words, _ int64, to Token) Output { m.parked = to; return Output{} })
	old := st.log
	st.mu.Lock()
	st.log = old.reopened()
	st.noOpen = errors.New("not yet")
	st.mu.Unlock()
	old.fail(errors.New("sync failed"))
	failure(t, got(t, b), CodeCoordinatorNotAvailable, true)
	failure(t, got(t, kept), CodeCoordinatorNotAvailable, true)
	opens := func() int { st.mu.Lock(); defer st.mu.Unlock(); return st.opened }
	eventually(t, "a try to load", func() bool { return opens() == 2 })
	// Not "loading": a log that can't be read may stay so, and the answer says why.
	eventually(t, "the cause", func() bool {
		f := got(t, st.say("c")).(Failure)
		return f.Code == CodeCoordinatorNotAvailable && !f.Lost && strings.Contains(f.Error(), "not yet")
	})
	st.mu.Lock()
	st.noOpen = nil
	st.mu.Unlock()
	eventually(t, "the back-off's timer", func() bool {
		st.clock.Advance(reloadMin)
		return opens() > 2
	})
	st.serving()
	if s := st.state(); s != "a." {
		t.Fatalf("state %q, what was not durable is gone", s)
	}
}

func TestRecordThatCanNotBeReplayedLoadsAgain(t *testing.T) {
	st := newStage(t, &fakeLog{auto: true}).start()
	r := st.do(func(m *words, _ int64, to Token) Output {
		m.refuse = "bad"
		return Output{Records: say("bad")}
	})
	failure(t, got(t, r), CodeCoordinatorNotAvailable, true)
	eventually(t, "second load", func() bool { st.mu.Lock(); defer st.mu.Unlock(); return st.opened == 2 })
	st.serving()
	if s := st.state(); s != "bad." {
		t.Fatalf("state %q, the new machine can read it", s)
	}
}

func TestDeadStorageLoadsAgain(t *testing.T) {
	st := newStage(t, &fakeLog{auto: true}).start()
	st.log.refuse = &partition.Error{Code: partition.CodeKafkaStorageError, Reason: "offline", Offline: true}
	failure(t, got(t, st.say("a")), CodeCoordinatorNotAvailable, true)
	eventually(t, "second load", func() bool { st.mu.Lock(); defer st.mu.Unlock(); return st.opened == 2 })
}

func TestTick(t *testing.T) {
	st := newStage(t, &fakeLog{auto: true}).start()
	got(t, st.do(func(m *words, nowMs int64, to Token) Output {
		m.deadline = nowMs + 50
		return Output{Replies: []Reply{{To: to}}}
	}))
	st.clock.Advance(49 * time.Millisecond)
	if s := st.state(); s != "" {
		t.Fatalf("ticked early: %q", s)
	}
	// What can not be appended is due again.
	st.log.refuse = errors.New("disk is full")
	st.clock.Advance(time.Millisecond)
	st.log.refuse = nil
	if s := st.state(); s != "" {
		t.Fatalf("ticked without a log: %q", s)
	}
	st.clock.Advance(tickRetry)
	if s := st.state(); s != "tick." {
		t.Fatalf("state %q", s)
	}
}

// A machine that has something to do and no log to do it in is not loaded again and again.
func TestTickOnDeadStorageWaits(t *testing.T) {
	st := newStage(t, &fakeLog{auto: true})
	st.deadline = 1
	st.log.refuse = &partition.Error{Code: partition.CodeKafkaStorageError, Reason: "offline", Offline: true}
	st.start()
	opened := func() int { st.mu.Lock(); defer st.mu.Unlock(); return st.opened }
	for range 20 {
		st.clock.Advance(0)
		st.serving()
	}
	if n := opened(); n != 2 {
		t.Fatalf("the log was loaded %d times in no time, want 2", n)
	}
	st.clock.Advance(tickRetry)
	st.serving()
	if n := opened(); n != 3 {
		t.Fatalf("the log was loaded %d times after one pause, want 3", n)
	}
	st.log.refuse = nil
	st.clock.Advance(tickRetry)
	if s := st.state(); s != "tick." {
		t.Fatalf("state %q", s)
	}
}

func TestResume(t *testing.T) {
	st := newStage(t, &fakeLog{}).start()
	waiting := st.do(func(m *words, _ int64, to Token) Output { m.parked = to; return Output{} })
	st.log.sync()
	pending(t, waiting)
	st.say("go")
	if s := st.state(); s != "go.resumed." {
		t.Fatalf("state %q", s)
	}
	pending(t, waiting)
	st.log.sync()
	if r := got(t, waiting); r != "resumed" {
		t.Fatal(r)
	}
}

func TestMarkerIsOneStep(t *testing.T) {
	st := newStage(t, &fakeLog{}).start()
	st.say("a")
	done := make(chan any, 1)
	if err := st.rt.AppendMarker(0, producer.Marker{ProducerID: 1, Commit: true}, func(err error) { done <- err }); err != nil {
		t.Fatal(err)
	}
	if s := st.state(); s != "a.!" {
		t.Fatalf("state %q", s)
	}
	pending(t, done)
	st.log.sync()
	if err := got(t, done); err != nil {
		t.Fatal(err)
	}
	// Both the record and the marker are read at the next load.
	again := newStage(t, st.log.reopened()).start()
	if s := again.state(); s != "a.!" {
		t.Fatalf("state after a restart %q", s)
	}
	st.log.refuse = errors.New("disk is full")
	if err := st.rt.AppendMarker(0, producer.Marker{}, nil); err == nil || st.state() != "a.!" {
		t.Fatalf("marker that was not appended: %v, state %q", err, st.state())
	}
	if err := st.rt.AppendMarker(7, producer.Marker{}, nil); !errors.Is(err, ErrNoPartition) {
		t.Fatal(err)
	}
}

func TestBatchLimit(t *testing.T) {
	st := newStage(t, &fakeLog{auto: true}).start()
	long := strings.Repeat("x", 100)
	failure(t, got(t, st.say(long, long, long)), CodeRecordListTooLarge, false)
	if n := len(st.log.batches); n != 0 {
		t.Fatalf("%d batches of an output that does not fit", n)
	}
	r := st.do(func(_ *words, _ int64, to Token) Output {
		return Output{Records: say(long, long, long), Splittable: true, Replies: []Reply{{To: to, Response: "split"}}}
	})
	if got(t, r) != "split" || len(st.log.batches) != 3 {
		t.Fatalf("%d batches", len(st.log.batches))
	}
}

func TestClose(t *testing.T) {
	st := newStage(t, &fakeLog{}).start()
	a := st.say("a")
	st.rt.Close()
	failure(t, got(t, a), CodeCoordinatorNotAvailable, true)
	failure(t, got(t, st.say("b")), CodeCoordinatorNotAvailable, true)
	st.log.sync()
	st.rt.Close()
	if len(a) > 0 {
		t.Fatal("answered twice")
	}
}

func TestBatchesAsKafkaWritesThem(t *testing.T) {
	st := newStage(t, &fakeLog{auto: true}).start()
	got(t, st.say("a"))
	st.do(func(_ *words, _ int64, to Token) Output {
		return Output{Records: say("b"), Txn: &Txn{ProducerID: 7, Epoch: 3}}
	})
	plain, txn := st.log.batches[0], st.log.batches[1]
	if plain.ProducerID() != -1 || plain.ProducerEpoch() != -1 || plain.BaseSequence() != 0 || plain.Attributes().Transactional() {
		t.Errorf("plain batch: id %d epoch %d sequence %d", plain.ProducerID(), plain.ProducerEpoch(), plain.BaseSequence())
	}
	if txn.ProducerID() != 7 || txn.ProducerEpoch() != 3 || txn.BaseSequence() != 0 || !txn.Attributes().Transactional() {
		t.Errorf("transactional batch: id %d epoch %d sequence %d", txn.ProducerID(), txn.ProducerEpoch(), txn.BaseSequence())
	}
}

// TestPartitionFor has the partitions, of three, in which Apache Kafka 4.4.0 put these
// ids, and Java's corner cases.
func TestPartitionFor(t *testing.T) {
	for _, c := range []struct {
		key     string
		n, want int32
	}{
		{"txn-v2-p1", 3, 1}, {"txn-v2-p2", 3, 0}, {"txn-v2-p3", 3, 2}, {"gtx", 3, 0}, {"crash-0", 3, 1}, {"crash-1", 3, 2},
		{"", 50, 0}, {"a", 50, 97 % 50},
		{"polygenelubricants", 50, 0},                 // hash -2^31
		{"\U0001F600", 50, (0xD83D*31 + 0xDE00) % 50}, // a surrogate pair
	} {
		if got := PartitionFor(c.key, c.n); got != c.want {
			t.Errorf("PartitionFor(%q, %d) is %d, want %d", c.key, c.n, got, c.want)
		}
	}
}

func TestOptionsValidate(t *testing.T) {
	good := Options[*words]{Topic: "t", Partitions: 1, Open: func(int32) (Log, error) { return nil, nil }, New: func(int32) *words { return nil }}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, break1 := range map[string]func(*Options[*words]){
		"Topic":         func(o *Options[*words]) { o.Topic = "" },
		"Partitions":    func(o *Options[*words]) { o.Partitions = 0 },
		"Open":          func(o *Options[*words]) { o.Open = nil },
		"New":           func(o *Options[*words]) { o.New = nil },
		"MaxBatchBytes": func(o *Options[*words]) { o.MaxBatchBytes = -1 },
		"Workers":       func(o *Options[*words]) { o.Workers = -1 },
	} {
		o := good
		break1(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v", field, err)
		}
		if _, err := NewRuntime(o); err == nil {
			t.Errorf("%s: NewRuntime takes it", field)
		}
	}
}
