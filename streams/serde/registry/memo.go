package registry

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/streams/serde"
)

// errorsLast is how long a definite error is believed: records that all fail for
// the same reason must not become as many requests.
const errorsLast = 5 * time.Second

// memo is a result that is asked for once, by one caller at a time. An error that
// says "not now" is not kept, but those who waited for that very attempt get it
// too: else each of them would wait for its own timeout, one after the other.
type memo[T any] struct {
	attempts atomic.Int64

	mu    sync.Mutex // held while asking
	known bool
	v     T
	err   error
	until time.Time
}

func (m *memo[T]) get(ask func() (T, error)) (T, error) {
	came := m.attempts.Load()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.known:
		return m.v, nil
	case m.err != nil && (m.attempts.Load() != came || time.Now().Before(m.until)):
		return m.v, m.err
	}
	v, err := ask()
	m.attempts.Add(1)
	if err != nil {
		m.err, m.until = err, time.Time{}
		if !errors.Is(err, serde.ErrUnavailable) {
			m.until = time.Now().Add(errorsLast)
		}
		return m.v, err
	}
	m.v, m.known, m.err = v, true, nil
	return v, nil
}

// memos are memos by key.
type memos[K comparable, T any] struct {
	mu  sync.Mutex
	all map[K]*memo[T]
}

// maxMemos bounds what is remembered of keys: a broken producer can put four
// billion schema numbers into a topic.
const maxMemos = 10_000

func (m *memos[K, T]) at(k K) *memo[T] {
	m.mu.Lock()
	defer m.mu.Unlock()
	if one, ok := m.all[k]; ok {
		return one
	}
	if m.all == nil || len(m.all) >= maxMemos {
		m.all = map[K]*memo[T]{}
	}
	one := new(memo[T])
	m.all[k] = one
	return one
}
