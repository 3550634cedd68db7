package sim

import (
	"strconv"
	"time"
)

// relaxed is a topic in which what is outside of transactions is acknowledged from the page cache.
const relaxed = "relaxed"

// bounds are how much of the relaxed topic a power cut may take.
type bounds struct {
	mode     string
	messages int64         // less than so many records, 0 for any
	after    time.Duration // what is older, 0 for whatever
}

func newBounds(w *world) bounds {
	b := bounds{mode: "os"}
	if w.chance(2) {
		b.mode, b.after = "interval", w.between(5*time.Millisecond, 300*time.Millisecond)
	}
	if w.chance(2) {
		b.messages = 2 + w.rng.Int64N(10)
	}
	return b
}

func (b bounds) settings() map[string]string {
	c := smallSegments()
	c["millrace.durability"] = b.mode
	if b.messages > 0 {
		c["flush.messages"] = strconv.FormatInt(b.messages, 10)
	}
	if b.after > 0 {
		c["flush.ms"] = strconv.FormatInt(max(b.after.Milliseconds(), 1), 10)
	}
	return c
}
