// Package statetest is the conformance suite for implementations of
// [state.Image]. A new engine runs it in its own tests:
//
//	func TestImage(t *testing.T) {
//		statetest.Image(t, statetest.Engine{Open: func(t *testing.T, dir string) state.Image { … }, Durable: true})
//	}
package statetest

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/millrace/millrace/streams/state"
)

// Engine is the implementation under test.
type Engine struct {
	// Open opens the image in dir, which exists and belongs to one test.
	Open func(t *testing.T, dir string) state.Image
	// Durable says that what Apply stored is there after Close and Open.
	Durable bool
}

// Image runs every case against the engine.
func Image(t *testing.T, e Engine) {
	t.Run("Empty", e.empty)
	t.Run("RowsAndPosition", e.rowsAndPosition)
	t.Run("EmptyValueIsAValue", e.emptyValue)
	t.Run("RangeBounds", e.rangeBounds)
	t.Run("RangeStops", e.rangeStops)
	t.Run("SlicesAreNotKept", e.slicesNotKept)
	t.Run("Wipe", e.wipe)
	t.Run("Closed", e.closed)
	t.Run("LargeBatch", e.largeBatch)
	t.Run("Model", e.model)
}

func pos(next int64) state.Position {
	return state.Position{TopicID: [16]byte{1, 2, 3}, Next: next, LeaderEpoch: 4, TimeMs: 1_000_000_000_000 + next}
}

func (e Engine) new(t *testing.T) state.Image {
	t.Helper()
	img := e.Open(t, t.TempDir())
	t.Cleanup(func() {
		if err := img.Close(); err != nil && !errors.Is(err, state.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return img
}

func apply(t *testing.T, img state.Image, p state.Position, rows ...state.Row) {
	t.Helper()
	if err := img.Apply(rows, p); err != nil {
		t.Fatalf("Apply: %v", err)
	}
}

func row(k, v string) state.Row { return state.Row{Key: []byte(k), Value: []byte(v)} }

// ranger is what Dump reads: stores, overlays and images alike.
type ranger interface {
	Range(from, to []byte) iter.Seq2[state.Row, error]
}

// Dump reads a whole store or image into a map. It fails the test when the
// rows are out of order.
func Dump(t testing.TB, s ranger) map[string]string {
	t.Helper()
	got := map[string]string{}
	var last []byte
	for r, err := range s.Range(nil, nil) {
		if err != nil {
			t.Fatalf("Range: %v", err)
		}
		if last != nil && bytes.Compare(last, r.Key) >= 0 {
			t.Fatalf("Range: %q after %q", r.Key, last)
		}
		last = append(last[:0], r.Key...)
		got[string(r.Key)] = string(r.Value)
	}
	return got
}

// backward reads the keys in a range from its end, and turns them round.
func backward(t *testing.T, s state.Image, from, to []byte) string {
	t.Helper()
	var got []string
	for r, err := range s.Backward(from, to) {
		if err != nil {
			t.Fatalf("Backward: %v", err)
		}
		got = append(got, string(r.Key))
	}
	slices.Reverse(got)
	return fmt.Sprint(got)
}

// keys reads the keys in a range, in order.
func keys(t *testing.T, s ranger, from, to []byte) string {
	t.Helper()
	var got []string
	for r, err := range s.Range(from, to) {
		if err != nil {
			t.Fatalf("Range: %v", err)
		}
		got = append(got, string(r.Key))
	}
	return fmt.Sprint(got)
}
