package operator

import (
	"encoding/binary"
	"fmt"
	"time"
)

// KeyTimers is what user code of one node gets of declared timers: at most one for
// each key. They are in a store, so they outlive a crash, and each is called once.
// A timer has two rows:
//
//	1, key: when it is due (8 bytes)
//	0, when it is due (8), key: nothing
type KeyTimers[K any] struct {
	site *Site
	core *keyTimers
	key  *Codec[K]
	kbuf []byte
}

// keyTimers are the timers of one store in a task.
type keyTimers struct {
	site      *Site // whose function is called
	store     rawStore
	firstMs   int64 // none is due before
	uncertain bool  // firstMs is to be looked up
	call1     func(key []byte, dueMs, nowMs int64) error
	row       []byte
	due0      []byte
}

// OpenTimers opens the timers for a site.
func OpenTimers[K any](name string, key *Codec[K], clock int) func(*Builder, *Site) (any, error) {
	return func(b *Builder, s *Site) (any, error) {
		core, err := Join(b, "timers "+name, func() (*keyTimers, error) {
			store, err := openRaw(b, name)
			c := &keyTimers{store: store, uncertain: true}
			b.t.timers[clock] = append(b.t.timers[clock], c)
			b.t.checks = append(b.t.checks, func() error {
				if c.call1 == nil {
					return fmt.Errorf("timers %s: no processor has set what they call, with OnTimer", name)
				}
				return nil
			})
			return c, err
		})
		return &KeyTimers[K]{site: s, core: core, key: key}, err
	}
}

// OnTimer sets what the timers call.
func (t *KeyTimers[K]) OnTimer(fn func(k K, due time.Time, nowMs int64) error) {
	if t.core.call1 != nil {
		t.site.fail(fmt.Errorf("timers %s: what they call is set twice", t.core.store.name))
	}
	t.core.site = t.site
	t.core.call1 = func(key []byte, dueMs, nowMs int64) error {
		k, err := t.key.Serde.Decode(key)
		if err != nil {
			return t.site.fail(t.core.store.wrap(err))
		}
		return fn(k, time.UnixMilli(dueMs).UTC(), nowMs)
	}
}

// Set makes the timer of a key due at a time, in place of one that it has.
func (t *KeyTimers[K]) Set(k K, at time.Time) error {
	if err := t.Cancel(k); err != nil {
		return err
	}
	c, ms := t.core, max(at.UnixMilli(), 0)
	c.row = append(append(c.row[:0], 1), t.kbuf...)
	c.due0 = append(binary.BigEndian.AppendUint64(append(c.due0[:0], 0), uint64(ms)), t.kbuf...)
	if err := c.store.Put(c.row, c.due0[1:9]); err != nil {
		return t.site.fail(err)
	}
	if err := c.store.Put(c.due0, []byte{}); err != nil {
		return t.site.fail(err)
	}
	c.firstMs = min(c.firstMs, ms)
	return nil
}

// Cancel takes the timer of a key back, if it has one.
func (t *KeyTimers[K]) Cancel(k K) (err error) {
	if t.kbuf, err = t.key.Append(t.kbuf[:0], &k); err != nil {
		return err
	}
	if err := t.core.cancel(t.kbuf); err != nil {
		return t.site.fail(err)
	}
	return nil
}

// At is when the timer of a key is due; ok is false if it has none.
func (t *KeyTimers[K]) At(k K) (at time.Time, ok bool, err error) {
	if t.kbuf, err = t.key.Append(t.kbuf[:0], &k); err != nil {
		return at, false, err
	}
	t.core.row = append(append(t.core.row[:0], 1), t.kbuf...)
	v, ok, err := t.core.store.Get(t.core.row)
	if err != nil {
		return at, false, t.site.fail(err)
	}
	if !ok {
		return at, false, nil
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(v))).UTC(), true, nil
}

func (c *keyTimers) cancel(key []byte) error {
	c.row = append(append(c.row[:0], 1), key...)
	v, ok, err := c.store.Get(c.row)
	if err != nil || !ok {
		return err
	}
	ms := int64(binary.BigEndian.Uint64(v))
	c.uncertain = c.uncertain || ms == c.firstMs
	c.due0 = append(append(append(c.due0[:0], 0), v...), key...)
	if err := c.store.Delete(c.row); err != nil {
		return err
	}
	return c.store.Delete(c.due0)
}

func (c *keyTimers) due() int64 {
	if !c.uncertain {
		return c.firstMs
	}
	c.firstMs, c.uncertain = never, false
	for row, err := range c.store.Range(nil, []byte{1}) {
		if err != nil {
			c.site.fail(err)
			return c.firstMs
		}
		c.firstMs = int64(binary.BigEndian.Uint64(row.Key[1:]))
		break
	}
	return c.firstMs
}

// call calls the one that is due first. It is gone before the function runs, which
// may set it anew.
func (c *keyTimers) call(nowMs int64) error {
	c.uncertain = true
	var key []byte
	for row, err := range c.store.Range(nil, []byte{1}) {
		if err != nil {
			return err
		}
		key = append(key, row.Key...)
		break
	}
	if key == nil {
		return nil
	}
	if err := c.cancel(key[9:]); err != nil {
		return err
	}
	c.site.enter()
	err := c.call1(key[9:], int64(binary.BigEndian.Uint64(key[1:])), nowMs)
	c.site.leave()
	if err != nil {
		return c.site.once(err)
	}
	return nil
}
