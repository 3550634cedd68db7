package state_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/streams/state/statetest"
)

// logged runs Log and writes what it emitted as "k=v" and "k!" for tombstones.
func logged(t *testing.T, o *state.Overlay) string {
	t.Helper()
	var out []string
	err := o.Log(func(k, v []byte) error {
		if v == nil {
			out = append(out, string(k)+"!")
		} else {
			out = append(out, string(k)+"="+string(v))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

func commit(t *testing.T, o *state.Overlay, next int64) {
	t.Helper()
	if err := o.Commit(state.Position{TopicID: [16]byte{9}, Next: next}); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, s state.Store, kv ...string) {
	t.Helper()
	for _, p := range kv {
		k, v, ok := strings.Cut(p, "=")
		var err error
		if ok {
			err = s.Put([]byte(k), []byte(v))
		} else {
			err = s.Delete([]byte(k))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOverlayLogsEachIdentityOnceInKeyOrder(t *testing.T) {
	t.Parallel()
	o := state.NewOverlay(state.NewMemory(), state.OverlayOptions{})
	put(t, o, "c=1", "a=1", "b=1", "a=2", "c=3", "b")
	if got, want := logged(t, o), "a=2 b! c=3"; got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
	commit(t, o, 3)
	if got := logged(t, o); got != "" {
		t.Errorf("logged %q again after the commit", got)
	}
	put(t, o, "a=", "d=4")
	if got, want := logged(t, o), "a= d=4"; got != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}

func TestLogOrdersAnyKeys(t *testing.T) {
	t.Parallel()
	o := state.NewOverlay(state.NewMemory(), state.OverlayOptions{})
	rnd := rand.New(rand.NewPCG(seedtest.New(t), 0))
	var want []string
	for range 500 {
		key := "same" + strings.Repeat("x", rnd.IntN(12)) + strings.Repeat("\x00", rnd.IntN(3)) + strings.Repeat("y", rnd.IntN(12))
		if err := o.Put([]byte(key), []byte{}); err != nil {
			t.Fatal(err)
		}
		want = append(want, key)
	}
	slices.Sort(want)
	var got []string
	if err := o.Log(func(k, _ []byte) error { got = append(got, string(k)); return nil }); err != nil {
		t.Fatal(err)
	}
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("logged %q, want %q", got, want)
	}
}

func TestOverlayExpiry(t *testing.T) {
	t.Parallel()
	for _, flush := range []int{1, 100} {
		o := state.NewOverlay(state.NewMemory(), state.OverlayOptions{FlushCommits: flush})
		put(t, o, "1a=x", "2a=x", "3a=x")
		commit(t, o, 3)
		put(t, o, "1b=new", "2a=again", "2b", "3b=stays")
		if err := o.Expire(nil, []byte("3")); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := o.Get([]byte("1b")); ok || err != nil {
			t.Errorf("an expired row is still there: %v %v", ok, err)
		}
		if got, want := logged(t, o), "1a! 2a! 2b! 3b=stays"; got != want {
			t.Errorf("flush every %d: logged %q, want %q", flush, got, want)
		}
		put(t, o, "1b=back")
		if got, want := logged(t, o), "1a! 1b=back 2a! 2b! 3b=stays"; got != want {
			t.Errorf("flush every %d: logged %q, want %q", flush, got, want)
		}
		commit(t, o, 8)
		want := map[string]string{"1b": "back", "3a": "x", "3b": "stays"}
		if got := statetest.Dump(t, o); !maps.Equal(got, want) {
			t.Errorf("flush every %d: rows %v, want %v", flush, got, want)
		}
	}
}

// spied counts what an image is asked for and what it is told.
type spied struct {
	*state.Memory
	gets, rows int
}

func (s *spied) Get(key []byte) ([]byte, bool, error) {
	s.gets++
	return s.Memory.Get(key)
}

func (s *spied) Apply(rows []state.Row, pos state.Position) error {
	s.rows += len(rows)
	return s.Memory.Apply(rows, pos)
}

// Rows above all that the image has had are known not to be there, and rows that come
// and go between two flushes never reach it: windows pass by without a look at the
// disk.
func TestImageIsSparedNewRows(t *testing.T) {
	t.Parallel()
	image := &spied{Memory: state.NewMemory()}
	row := func(window, key int) []byte { return fmt.Appendf(nil, "%08d-%d", window, key) }
	next := int64(0)
	o := state.NewOverlay(image, state.OverlayOptions{Windowed: true, FlushCommits: 2, CacheBytes: 2000})
	for w := range 40 {
		for k := range 5 {
			if _, ok, err := o.Get(row(w, k)); ok || err != nil {
				t.Fatalf("window %d: %v %v", w, ok, err)
			}
			if err := o.Put(row(w, k), []byte("v")); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Expire([]byte("00000000"), fmt.Appendf(nil, "%08d", w)); err != nil {
			t.Fatal(err)
		}
		next += 10
		commit(t, o, next)
	}
	if image.gets != 0 {
		t.Errorf("the image was asked for %d rows", image.gets)
	}
	// Every other window is the newest one of a flush, and is deleted by the next.
	if want := 20*5 + 19*5; image.rows != want {
		t.Errorf("the image was told of %d rows, want %d", image.rows, want)
	}
	if got := len(statetest.Dump(t, o)); got != 5 {
		t.Errorf("%d rows are left, want those of the last window", got)
	}
	// A new overlay knows what the image has.
	if err := o.Flush(); err != nil {
		t.Fatal(err)
	}
	again := state.NewOverlay(image, state.OverlayOptions{Windowed: true})
	for _, k := range [][]byte{row(39, 4), row(39, 5), row(40, 0)} {
		if _, ok, err := again.Get(k); err != nil || ok != (string(k) == string(row(39, 4))) {
			t.Errorf("%s: %v %v", k, ok, err)
		}
	}
	if image.gets != 1 {
		t.Errorf("the image was asked for %d rows, want the one that it has", image.gets)
	}
}

func TestOverlayWritesWhileRanging(t *testing.T) {
	t.Parallel()
	o := state.NewOverlay(state.NewMemory(), state.OverlayOptions{FlushCommits: 1})
	put(t, o, "a=1", "c=1", "e=1")
	commit(t, o, 3)
	put(t, o, "b=2", "d=2")
	var seen []string
	for r, err := range o.Range(nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		k := string(r.Key)
		seen = append(seen, k)
		put(t, o, k, k+"+=new")
	}
	if got, want := strings.Join(seen, " "), "a b c d e"; got != want {
		t.Errorf("saw %s, want %s", got, want)
	}
	want := map[string]string{"a+": "new", "b+": "new", "c+": "new", "d+": "new", "e+": "new"}
	if got := statetest.Dump(t, o); !maps.Equal(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
}

func TestOverlayOptionsValidate(t *testing.T) {
	t.Parallel()
	if err := (state.OverlayOptions{}).Validate(); err != nil {
		t.Errorf("zero options: %v", err)
	}
	err := state.OverlayOptions{FlushCommits: -1}.Validate()
	if err == nil || !strings.Contains(err.Error(), "FlushCommits") {
		t.Errorf("FlushCommits -1: %v", err)
	}
}

// A position that moves without a row, past markers or aborted records, reaches
// the image with the next flush: a restart must not read them again.
func TestPositionAloneReachesTheImage(t *testing.T) {
	t.Parallel()
	image := state.NewMemory()
	o := state.NewOverlay(image, state.OverlayOptions{})
	put(t, o, "a=1")
	commit(t, o, 1)
	if err := o.Flush(); err != nil {
		t.Fatal(err)
	}
	commit(t, o, 7)
	if err := o.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := image.Position().Next; got != 7 {
		t.Errorf("the image is at %d, want 7", got)
	}
}

// changelog is a topic partition with its committed records only.
type changelog []state.Row

func (c changelog) fold(next int64) map[string]string {
	rows := map[string]string{}
	for _, r := range c[:next] {
		if r.Value == nil {
			delete(rows, string(r.Key))
		} else {
			rows[string(r.Key)] = string(r.Value)
		}
	}
	return rows
}

// The rule: after any sequence of writes, commits, aborts, flushes and
// crashes, the image equals the fold of the committed changelog up to the
// stored position, and the overlay equals a plain map.
func TestStoreEqualsFoldOfChangelog(t *testing.T) {
	t.Parallel()
	for _, engine := range []struct {
		name  string
		steps int
		open  func(t *testing.T, dir string) state.Image
	}{
		{"leveldb", 1500, openLevel},
		{"memory", 6000, func(*testing.T, string) state.Image { return state.NewMemory() }},
	} {
		for seed := uint64(1); seed <= 4; seed++ {
			t.Run(fmt.Sprintf("%s/%d", engine.name, seed), func(t *testing.T) {
				t.Parallel()
				r := &foldRun{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), open: engine.open}
				r.start()
				for range engine.steps {
					r.step()
				}
				r.stop()
			})
		}
	}
}

type foldRun struct {
	t         *testing.T
	rnd       *rand.Rand
	dir       string
	open      func(*testing.T, string) state.Image
	image     state.Image
	overlay   *state.Overlay
	log       changelog
	committed map[string]string
	now       map[string]string
}

func (r *foldRun) start() {
	r.image = r.open(r.t, r.dir)
	p := r.image.Position()
	if got, want := statetest.Dump(r.t, r.image), r.log.fold(p.Next); !maps.Equal(got, want) {
		r.t.Fatalf("image at %d has\n%v, the changelog folds to\n%v", p.Next, got, want)
	}
	// Restore the tail as a take-over does.
	for i := p.Next; i < int64(len(r.log)); i++ {
		pos := state.Position{TopicID: [16]byte{7}, Next: i + 1}
		if err := r.image.Apply([]state.Row{r.log[i]}, pos); err != nil {
			r.t.Fatal(err)
		}
	}
	r.overlay = state.NewOverlay(r.image, state.OverlayOptions{
		Windowed: r.rnd.IntN(2) == 0, FlushCommits: 1 + r.rnd.IntN(5), FlushBytes: 1 + r.rnd.IntN(3000), CacheBytes: 1 + r.rnd.IntN(4000),
	})
	r.committed = r.log.fold(int64(len(r.log)))
	r.now = maps.Clone(r.committed)
}

func (r *foldRun) key() string { return fmt.Sprintf("%08d/%d", r.rnd.IntN(6), r.rnd.IntN(6)) }

func (r *foldRun) step() {
	k := r.key()
	switch n := r.rnd.IntN(100); {
	case n < 45:
		v := fmt.Sprint(r.rnd.IntN(1000))
		put(r.t, r.overlay, k+"="+v)
		r.now[k] = v
	case n < 55:
		put(r.t, r.overlay, k)
		delete(r.now, k)
	case n < 75:
		v, ok, err := r.overlay.Get([]byte(k))
		want, wantOK := r.now[k]
		if err != nil || ok != wantOK || string(v) != want {
			r.t.Fatalf("Get(%s) = %q %v %v, want %q %v", k, v, ok, err, want, wantOK)
		}
	case n < 82:
		if got := statetest.Dump(r.t, r.overlay); !maps.Equal(got, r.now) {
			r.t.Fatalf("overlay\n%v, want\n%v", got, r.now)
		}
		r.backward(r.key(), r.key())
	case n < 86:
		if r.rnd.IntN(2) == 0 {
			r.expire(nil, []byte(k))
		} else { // whole windows
			r.expire([]byte(r.key()[:8]), []byte(k[:8]))
		}
	case n < 94:
		r.commit()
	case n < 97:
		r.overlay.Abort()
		r.now = maps.Clone(r.committed)
	default:
		r.stop()
		r.start()
	}
}

func (r *foldRun) backward(from, to string) {
	r.t.Helper()
	var want []string
	for _, k := range slices.Sorted(maps.Keys(r.now)) {
		if from <= k && k < to {
			want = append([]string{k + "=" + r.now[k]}, want...)
		}
	}
	var got []string
	for row, err := range r.overlay.Backward([]byte(from), []byte(to)) {
		if err != nil {
			r.t.Fatal(err)
		}
		got = append(got, string(row.Key)+"="+string(row.Value))
	}
	if !slices.Equal(got, want) {
		r.t.Fatalf("Backward(%s, %s) = %v, want %v", from, to, got, want)
	}
}

func (r *foldRun) expire(from, to []byte) {
	if err := r.overlay.Expire(from, to); err != nil {
		r.t.Fatal(err)
	}
	maps.DeleteFunc(r.now, func(k, _ string) bool { return string(from) <= k && k < string(to) })
}

func (r *foldRun) commit() {
	var last string
	err := r.overlay.Log(func(k, v []byte) error {
		if string(k) <= last {
			r.t.Fatalf("logged %q after %q", k, last)
		}
		last = string(k)
		r.log = append(r.log, state.Row{Key: slices.Clone(k), Value: slices.Clone(v)})
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	pos := state.Position{TopicID: [16]byte{7}, Next: int64(len(r.log))}
	if err := r.overlay.Commit(pos); err != nil {
		r.t.Fatal(err)
	}
	r.committed = maps.Clone(r.now)
	if got := r.log.fold(pos.Next); !maps.Equal(got, r.committed) {
		r.t.Fatalf("the changelog folds to\n%v, want\n%v", got, r.committed)
	}
}

// stop ends the run: cleanly, which flushes, or as a crash does.
func (r *foldRun) stop() {
	var err error
	if r.rnd.IntN(2) == 0 {
		err = r.overlay.Close()
	} else {
		err = r.overlay.Drop()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestOverlaySteadyStateDoesNotAllocate(t *testing.T) {
	o := state.NewOverlay(state.NewMemory(), state.OverlayOptions{FlushCommits: 1 << 30, FlushBytes: 1 << 30})
	keys := make([][]byte, 100)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "key-%d", i)
	}
	value := []byte("a value of some length")
	var next int64
	round := func() {
		for _, k := range keys {
			if _, _, err := o.Get(k); err != nil {
				t.Fatal(err)
			}
			if err := o.Put(k, value); err != nil {
				t.Fatal(err)
			}
		}
		if err := o.Log(func(_, _ []byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
		next++
		commit(t, o, next)
	}
	for range 4 {
		round()
	}
	if n := testing.AllocsPerRun(50, round); n > 0 {
		t.Errorf("%v allocations per transaction of %d writes to known keys, want 0", n, len(keys))
	}
}
