package operator

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// Clock is the stream time of one node: the highest timestamp among the
// records that it took, -1 before the first. It is part of what a commit
// keeps (see Task.Progress), so a window that was closed before a crash is
// closed after it.
type Clock struct {
	id string
	ms int64
}

// newClock derives a short id from the node's name, which may be long: offset
// metadata, where the ids end up, is limited to 4096 bytes.
func newClock(node string) *Clock {
	h := fnv.New64a()
	h.Write([]byte(node)) // a hash never fails
	return &Clock{id: strconv.FormatUint(h.Sum64(), 36), ms: -1}
}

// Ms is the time in milliseconds, -1 for none.
func (c *Clock) Ms() int64 { return c.ms }

// Advance moves the clock forward, never back.
func (c *Clock) Advance(timeMs int64) { c.ms = max(c.ms, timeMs) }

// progressVersion starts every progress string, so that a later release can
// change what follows.
const progressVersion = "1"

// maxClocks keeps a progress string well below the 4096 bytes that brokers
// allow for the metadata of an offset: a clock takes at most 13+1+13+1.
const maxClocks = 120

// encodeProgress writes "1;<task's stream time>;<clock>=<time>;…", numbers in
// base 36.
func encodeProgress(streamMs int64, clocks []*Clock) string {
	if streamMs < 0 {
		return ""
	}
	b := append(make([]byte, 0, 16+24*len(clocks)), progressVersion+";"...)
	b = strconv.AppendInt(b, streamMs, 36)
	for _, c := range clocks {
		if c.ms < 0 {
			continue
		}
		b = append(b, ';')
		b = append(b, c.id...)
		b = append(b, '=')
		b = strconv.AppendInt(b, c.ms, 36)
	}
	return string(b)
}

// restoreProgress takes each time as far as the given string says; a string
// that is older than another changes nothing.
func restoreProgress(s string, streamMs *int64, clocks []*Clock) error {
	if s == "" {
		return nil
	}
	parts := strings.Split(s, ";")
	if parts[0] != progressVersion || len(parts) < 2 {
		return fmt.Errorf("progress %q has version %q, this release reads %s", s, parts[0], progressVersion)
	}
	ms, err := strconv.ParseInt(parts[1], 36, 64)
	if err != nil {
		return fmt.Errorf("progress %q: stream time: %w", s, err)
	}
	*streamMs = max(*streamMs, ms)
	for _, p := range parts[2:] {
		id, value, _ := strings.Cut(p, "=")
		ms, err := strconv.ParseInt(value, 36, 64)
		if err != nil {
			return fmt.Errorf("progress %q: clock %s: %w", s, id, err)
		}
		for _, c := range clocks {
			if c.id == id {
				c.Advance(ms)
			}
		}
	}
	return nil
}
