package streams

import (
	"time"

	"github.com/millrace/millrace/streams/internal/operator"
	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/window"
)

// Record is what the Try form of an operator gets, and what TryMap returns.
// A record that is given is valid during the call only.
type Record[K, V any] struct {
	Key   K
	Value V
	// Time is the record's timestamp, in UTC, whole milliseconds. In a record
	// that is returned, the zero Time stands for the time of the input.
	Time time.Time
	// Headers of the record. In a record that is returned, nil stands for
	// the headers of the input; Headers{} for none.
	Headers Headers
}

// Header is one header of a record: a Key, a string, and a Value, a []byte.
type Header = task.Header

// Headers are the headers of a record in their order. Keys may repeat.
type Headers []Header

// Get returns the value of the last header with this key, "" if there is none.
func (h Headers) Get(key string) string {
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].Key == key {
			return string(h[i].Value)
		}
	}
	return ""
}

// Window is a stretch of time, [Start, End); see package window.
type Window = window.Window

// Windowed is a key with its window: a struct of Key and Window.
type Windowed[K any] = window.Windowed[K]

// WindowKey joins a window and a key. It fits Rekey:
//
//	counts.ToStream().Rekey(streams.WindowKey)
func WindowKey[K any](w Window, k K) Windowed[K] { return window.Key(w, k) }

// show fills a public record from an internal one.
func (r *Record[K, V]) show(in *operator.Record[K, V]) {
	r.Key, r.Value, r.Headers = in.Key, in.Value, in.Headers
	r.Time = time.UnixMilli(in.TimeMs).UTC()
}

// showWindowed fills a public record from the internal one of a result.
func (r *Record[K, V]) showWindowed(in *operator.Record[window.Windowed[K], V]) {
	r.Key, r.Value, r.Headers = in.Key.Key, in.Value, in.Headers
	r.Time = time.UnixMilli(in.TimeMs).UTC()
}

// store writes a returned record into an internal one that already has time
// and headers of the input.
func (r *Record[K, V]) store(to *operator.Record[K, V], key operator.Nil[K], val operator.Nil[V]) {
	to.Key, to.Value = r.Key, r.Value
	to.NullKey, to.NullValue = key.Is(&to.Key), val.Is(&to.Value)
	if !r.Time.IsZero() {
		to.TimeMs = r.Time.UnixMilli()
	}
	if r.Headers != nil {
		to.Headers = r.Headers
	}
}
