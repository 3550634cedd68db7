package operator

import (
	"context"
	"fmt"
	"time"
)

// Scope is the context of user code that may reach more than its record: clocks,
// the position of the record, and the stores that its node uses.
type Scope struct {
	context.Context
	site   *Site
	stores map[string]any
}

type scopeKey struct{}

// Value implements context.Context; it finds the scope itself from any context
// made of it.
func (s *Scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// ScopeOf finds the scope in a context that was given to user code.
func ScopeOf(ctx context.Context) (*Scope, bool) {
	s, ok := ctx.Value(scopeKey{}).(*Scope)
	return s, ok
}

// open makes the scope of a site.
func (b *Builder) open(s *Site, uses []StoreUse) error {
	scope := &Scope{Context: b.t.ctx, site: s, stores: map[string]any{}}
	s.ctx = scope
	for _, u := range uses {
		x, err := u.Open(b, s)
		if err != nil {
			return fmt.Errorf("node %s: %w", s.node, err)
		}
		scope.stores[u.Name] = x
	}
	return nil
}

// Using lets the first site that build makes reach stores.
func Using[T any](uses []StoreUse, build func(*Builder) (T, error)) func(*Builder) (T, error) {
	if len(uses) == 0 {
		return build
	}
	return func(b *Builder) (T, error) {
		b.uses = uses
		return build(b)
	}
}

// Store is the handle of a store by its name, nil if the node does not use it.
func (s *Scope) Store(name string) any { return s.stores[name] }

// StreamTime is the task's stream time, the zero time before the first record.
func (s *Scope) StreamTime() time.Time {
	if s.site.task.streamMs < 0 {
		return time.Time{}
	}
	return time.UnixMilli(s.site.task.streamMs).UTC()
}

// WallClock is the time of day.
func (s *Scope) WallClock() time.Time { return time.UnixMilli(s.site.task.wallMs()).UTC() }

// Commit asks for a commit as soon as the record, or the timers, at hand are done.
func (s *Scope) Commit() {
	if c := s.site.task.env.Commit; c != nil {
		c()
	}
}

// Source is where the record at hand is from; ok is false in a timer.
func (s *Scope) Source() (topic string, partition int32, offset int64, ok bool) {
	r := s.site.task.current
	if r == nil {
		return "", s.site.task.env.Partition, -1, false
	}
	return r.Topic, r.Partition, r.Offset, true
}

// fail ends the task after the user code that is running: a store cannot be
// trusted.
func (s *Site) fail(err error) error {
	if s.task.fatal == nil {
		s.task.fatal = err
	}
	return err
}
