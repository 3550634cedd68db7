package listener

import "time"

// The APIs that move records. Their frames come from pools and may be large.
const (
	keyProduce = 0
	keyFetch   = 1
)

// Those whose frames may be larger than other control frames.
const (
	keyOffsetCommit    = 8
	keyJoinGroup       = 11
	keySyncGroup       = 14
	keyTxnOffsetCommit = 28
)

// Limits bound what one connection may hold. The zero value means the defaults.
type Limits struct {
	// MaxFrame is the largest frame accepted, in bytes; 100 MiB by default, as
	// Kafka's socket.request.max.bytes.
	MaxFrame int
	// MaxControlFrame is the largest frame of any API but Produce; 1 MiB by
	// default. Such requests are decoded into objects up to 32 times their size on
	// the wire, and answered with more. Requests that carry what members and jobs
	// keep with their assignments and offsets, and Fetch, whose decoder is our own,
	// may have four times as much.
	MaxControlFrame int
	// MaxRequests is how many requests of one connection may be under way; 1024
	// by default.
	MaxRequests int
	// MaxBytes is how many bytes of requests of one connection may be under way,
	// one frame excepted; 64 MiB by default.
	MaxBytes int
	// Idle closes a connection on which nothing was asked for so long and nothing
	// is under way; 10 minutes by default, as Kafka's connections.max.idle.ms.
	Idle time.Duration
	// Write closes a connection whose peer takes nothing for so long; one minute
	// by default.
	Write time.Duration
}

// WithDefaults fills in what is zero.
func (l Limits) WithDefaults() Limits {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&l.MaxFrame, 100<<20)
	set(&l.MaxControlFrame, 1<<20)
	set(&l.MaxRequests, 1024)
	set(&l.MaxBytes, 64<<20)
	if l.Idle == 0 {
		l.Idle = 10 * time.Minute
	}
	if l.Write == 0 {
		l.Write = time.Minute
	}
	return l
}

// ofKey is the largest frame of an API.
func (l *Limits) ofKey(key int16) int {
	switch key {
	case keyProduce:
		return l.MaxFrame
	case keyFetch, keyOffsetCommit, keyJoinGroup, keySyncGroup, keyTxnOffsetCommit:
		return min(4*l.MaxControlFrame, l.MaxFrame)
	}
	return l.MaxControlFrame
}
