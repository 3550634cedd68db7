package commitlog

import (
	"math"
	"sync/atomic"
)

// defaultFiles is how many log files may stay open without being used.
const defaultFiles = 256

// restTurns is how many turns a file must have been left alone for to count as idle.
const restTurns = 4

// Files counts the log files that the logs of a broker have open, and says when those that nobody uses are to be closed: many
// partitions are silent, and a descriptor costs the process one of a limited number, and memory here and in the kernel. It is
// shared by all logs and owns no file: the segments do. What else logs can share is here too. Time is counted in turns, so that use is noted with one load.
type Files struct {
	limit int64
	open  atomic.Int64
	turn  atomic.Uint32

	config atomic.Pointer[Config] // the last one that a log took
}

// NewFiles lets that many files stay open that are not used; 0 is 256. More are open only while they are in use.
func NewFiles(limit int) *Files {
	if limit <= 0 {
		limit = defaultFiles
	}
	return &Files{limit: int64(limit)}
}

// unbounded is for a log that shares with nobody.
func unbounded() *Files { return &Files{limit: math.MaxInt64} }

// share gives the copy of a configuration that other logs have, if the last one that took a configuration took the same: the
// partitions of a topic, and most topics.
func (f *Files) share(c Config) *Config {
	if last := f.config.Load(); last != nil && *last == c {
		return last
	}
	own := new(Config)
	*own = c
	f.config.Store(own)
	return own
}

// Open is how many files are open.
func (f *Files) Open() int64 { return f.open.Load() }

// Crowded tells whether so many are open that idle ones are to be closed.
func (f *Files) Crowded() bool { return f.open.Load() > f.limit }

// Turn begins the next turn. A file that is not used for four whole turns is idle, see [Log.Rest].
func (f *Files) Turn() { f.turn.Add(1) }

// idle tells whether something that was used in a turn counts as idle now.
func (f *Files) idle(used uint32) bool { return f.turn.Load()-used > restTurns }
