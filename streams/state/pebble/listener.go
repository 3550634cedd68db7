package pebble

import (
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// listener hears of the failures that Pebble has in the background or takes for
// fatal, and remembers the first. What Pebble has to tell otherwise is nobody's
// business: which tables it compacts, how long a flush took.
type listener struct {
	gate   *gate
	failed chan struct{} // closed with the first failure

	mu  sync.Mutex
	err error
}

var _ pebble.Logger = (*listener)(nil)

// Infof implements pebble.Logger.
func (*listener) Infof(string, ...any) {}

// Errorf implements pebble.Logger. It reports what Pebble deals with itself.
func (*listener) Errorf(string, ...any) {}

// Fatalf implements pebble.Logger. Pebble expects it to end the process; here it
// ends the use of this one store.
func (l *listener) Fatalf(format string, args ...any) {
	for _, a := range args {
		if err, ok := a.(error); ok {
			l.note(fmt.Errorf(format+" (%w)", append(args, err)...))
			return
		}
	}
	l.note(fmt.Errorf(format, args...))
}

func (l *listener) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.failed)
	}
}

// background hears of a flush or compaction that failed. Pebble tries again without
// a pause, and writes wait meanwhile: so the store fails, and a database that was
// abandoned is slowed down to an attempt a second.
func (l *listener) background(err error) {
	l.note(err)
	if l.gate.isShut() {
		time.Sleep(time.Second)
	}
}

// corruption hears of a block that does not check; whoever reads it, a compaction
// included, gets the error too.
func (*listener) corruption(pebble.DataCorruptionInfo) {}

// failure is the first thing that went wrong, nil if nothing did.
func (l *listener) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
