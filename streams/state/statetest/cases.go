package statetest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/streams/state"
)

func (e Engine) empty(t *testing.T) {
	img := e.new(t)
	if _, ok, err := img.Get([]byte("k")); ok || err != nil {
		t.Errorf("Get on an empty image = %v, %v", ok, err)
	}
	if img.Position().Known() {
		t.Errorf("position of a new image is %v", img.Position())
	}
	if got := keys(t, img, nil, nil); got != "[]" {
		t.Errorf("rows of a new image: %s", got)
	}
}

func (e Engine) rowsAndPosition(t *testing.T) {
	dir := t.TempDir()
	img := e.Open(t, dir)
	apply(t, img, pos(10), row("a", "1"), row("b", "2"))
	apply(t, img, pos(20), state.Row{Key: []byte("a")}, row("c", "3"))
	check := func() {
		t.Helper()
		if img.Position() != pos(20) {
			t.Errorf("position %v, want %v", img.Position(), pos(20))
		}
		want := map[string]string{"b": "2", "c": "3"}
		if got := Dump(t, img); !maps.Equal(got, want) {
			t.Errorf("rows %v, want %v", got, want)
		}
	}
	check()
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
	if !e.Durable {
		return
	}
	img = e.Open(t, dir)
	check()
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
}

func (e Engine) emptyValue(t *testing.T) {
	img := e.new(t)
	apply(t, img, pos(1), row("", "empty key"), row("k", ""))
	v, ok, err := img.Get([]byte("k"))
	if err != nil || !ok || len(v) != 0 {
		t.Errorf("Get of an empty value = %q, %v, %v", v, ok, err)
	}
	v, ok, err = img.Get(nil)
	if err != nil || !ok || string(v) != "empty key" {
		t.Errorf("Get of the empty key = %q, %v, %v", v, ok, err)
	}
}

func (e Engine) rangeBounds(t *testing.T) {
	img := e.new(t)
	apply(t, img, pos(1), row("a", "1"), row("b", "2"), row("b\x00", "3"), row("c", "4"), row("\xff\xff", "5"))
	for _, c := range []struct {
		from, to []byte
		want     string
	}{
		{nil, nil, "[a b b\x00 c \xff\xff]"},
		{[]byte("b"), nil, "[b b\x00 c \xff\xff]"},
		{nil, []byte("b"), "[a]"},
		{[]byte("b"), []byte("c"), "[b b\x00]"},
		{[]byte("aa"), []byte("b\x01"), "[b b\x00]"},
		{[]byte("b"), []byte("b"), "[]"},
		{[]byte("c"), []byte("a"), "[]"},
		{[]byte("x"), []byte("y"), "[]"},
		{nil, []byte{}, "[]"},
	} {
		if got := keys(t, img, c.from, c.to); got != c.want {
			t.Errorf("Range(%q, %q) = %q, want %q", c.from, c.to, got, c.want)
		}
		if got := backward(t, img, c.from, c.to); got != c.want {
			t.Errorf("Backward(%q, %q), reversed, = %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func (e Engine) rangeStops(t *testing.T) {
	img := e.new(t)
	apply(t, img, pos(1), row("a", "1"), row("b", "2"), row("c", "3"))
	for r, err := range img.Range(nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if string(r.Key) == "b" {
			break
		}
	}
	for r, err := range img.Backward(nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if string(r.Key) == "b" {
			break
		}
	}
	apply(t, img, pos(2), row("d", "4"))
	if got := keys(t, img, nil, nil); got != "[a b c d]" {
		t.Errorf("after a range that stopped early: %s", got)
	}
}

func (e Engine) slicesNotKept(t *testing.T) {
	img := e.new(t)
	k, v := []byte("key"), []byte("value")
	apply(t, img, pos(1), state.Row{Key: k, Value: v})
	copy(k, "xxx")
	copy(v, "xxxxx")
	got, ok, err := img.Get([]byte("key"))
	if err != nil || !ok || !bytes.Equal(got, []byte("value")) {
		t.Errorf("Get = %q, %v, %v after the caller reused its slices", got, ok, err)
	}
}

func (e Engine) wipe(t *testing.T) {
	img := e.new(t)
	apply(t, img, pos(9), row("a", "1"))
	if err := img.Wipe(); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, img, nil, nil); got != "[]" || img.Position().Known() {
		t.Errorf("after Wipe: rows %s, position %v", got, img.Position())
	}
	apply(t, img, pos(2), row("b", "2"))
	if got := keys(t, img, nil, nil); got != "[b]" || img.Position() != pos(2) {
		t.Errorf("after Wipe and Apply: rows %s, position %v", got, img.Position())
	}
}

func (e Engine) closed(t *testing.T) {
	img := e.Open(t, t.TempDir())
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := img.Get([]byte("k")); !errors.Is(err, state.ErrClosed) {
		t.Errorf("Get after Close: %v", err)
	}
	if err := img.Apply(nil, pos(1)); !errors.Is(err, state.ErrClosed) {
		t.Errorf("Apply after Close: %v", err)
	}
	for _, err := range img.Range(nil, nil) {
		if !errors.Is(err, state.ErrClosed) {
			t.Errorf("Range after Close: %v", err)
		}
	}
	for _, err := range img.Backward(nil, nil) {
		if !errors.Is(err, state.ErrClosed) {
			t.Errorf("Backward after Close: %v", err)
		}
	}
}

func (e Engine) largeBatch(t *testing.T) {
	img := e.new(t)
	var rows []state.Row
	big := bytes.Repeat([]byte("v"), 1000)
	for i := range 8000 {
		rows = append(rows, state.Row{Key: fmt.Appendf(nil, "key-%06d", i), Value: big})
	}
	apply(t, img, pos(8000), rows...)
	n := 0
	for r, err := range img.Range(nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.Key, rows[n].Key) || !bytes.Equal(r.Value, big) {
			t.Fatalf("row %d is %q", n, r.Key)
		}
		n++
	}
	if n != len(rows) {
		t.Errorf("%d rows, want %d", n, len(rows))
	}
}

// model compares the image with a map over many random batches, and reopens it
// now and then.
func (e Engine) model(t *testing.T) {
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, seed))
	dir := t.TempDir()
	img := e.Open(t, dir)
	want := map[string]string{}
	for step := range 200 {
		batch := map[string]state.Row{}
		for range rnd.IntN(20) {
			k := fmt.Sprintf("%c%d", 'a'+rune(rnd.IntN(3)), rnd.IntN(40))
			r := state.Row{Key: []byte(k)}
			delete(want, k)
			if rnd.IntN(3) > 0 {
				r.Value = fmt.Appendf([]byte{}, "%d", step)
				want[k] = string(r.Value)
			}
			batch[k] = r
		}
		var rows []state.Row
		for _, k := range slices.Sorted(maps.Keys(batch)) {
			rows = append(rows, batch[k])
		}
		apply(t, img, pos(int64(step)), rows...)
		if e.Durable && rnd.IntN(20) == 0 {
			if err := img.Close(); err != nil {
				t.Fatal(err)
			}
			img = e.Open(t, dir)
		}
		if got := Dump(t, img); !maps.Equal(got, want) || img.Position() != pos(int64(step)) {
			t.Fatalf("seed %d step %d: position %v, rows\n%v\nwant\n%v", seed, step, img.Position(), got, want)
		}
		from := fmt.Appendf(nil, "%c%d", 'a'+rune(rnd.IntN(3)), rnd.IntN(40))
		to := fmt.Appendf(nil, "%c%d", 'a'+rune(rnd.IntN(3)), rnd.IntN(40))
		if there, back := keys(t, img, from, to), backward(t, img, from, to); there != back {
			t.Fatalf("seed %d step %d: Range(%q, %q) = %s, Backward, reversed, = %s", seed, step, from, to, there, back)
		}
	}
	if err := img.Close(); err != nil {
		t.Fatal(err)
	}
}
