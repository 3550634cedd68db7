package operator

import (
	"context"
	"fmt"
	"regexp"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/state"
)

// Root makes the entry of one source for one task.
type Root struct {
	Node    string // under which its records are counted; Plan sets it
	Topic   string
	Pattern *regexp.Regexp // not nil: it reads all topics that match
	Build   func(*Builder) (Entry, error)
}

// Builder is at hand while a task is being built: nodes get their site, their
// store and their clock from it.
type Builder struct {
	t      *Task
	joints map[any]any // nodes with several parents, by identity; see Join
	uses   []StoreUse  // that the next site may reach
	err    error       // of a store that does not open
}

// StoreUse opens a declared store for the user code of a site.
type StoreUse struct {
	Name string
	Open func(*Builder, *Site) (any, error)
}

// NewTask builds the nodes behind the given sources for one partition.
func NewTask(env task.Env, roots []Root) (*Task, error) {
	if env.Emit == nil || env.Store == nil {
		return nil, fmt.Errorf("task of partition %d: Emit and Store are required", env.Partition)
	}
	t := &Task{env: env, ctx: env.Context, entries: map[string][]Entry{}, streamMs: -1}
	if t.ctx == nil {
		t.ctx = context.Background()
	}
	b := &Builder{t: t, joints: map[any]any{}}
	for _, root := range roots {
		e, err := root.Build(b)
		if err != nil {
			return nil, fmt.Errorf("task of partition %d: source %s: %w", env.Partition, root.Topic, err)
		}
		e = watchEntry(t, root.Node, e)
		if root.Pattern != nil {
			t.patterns = append(t.patterns, pattern{root.Pattern, e})
			continue
		}
		t.entries[root.Topic] = append(t.entries[root.Topic], e)
	}
	if b.err != nil {
		return nil, fmt.Errorf("task of partition %d: %w", env.Partition, b.err)
	}
	if len(t.clocks) > maxClocks {
		return nil, fmt.Errorf("task of partition %d keeps %d stream times, the limit is %d: split the application", env.Partition, len(t.clocks), maxClocks)
	}
	for _, p := range env.Progress {
		if err := restoreProgress(p, &t.streamMs, t.clocks); err != nil {
			return nil, fmt.Errorf("task of partition %d: %w", env.Partition, err)
		}
	}
	for _, init := range append(t.inits, t.checks...) {
		if err := init(); err != nil {
			return nil, fmt.Errorf("task of partition %d: %w", env.Partition, err)
		}
	}
	return t, nil
}

// Site makes the place of a node whose user code belongs to a phase.
func (b *Builder) Site(node string, phase task.Phase, handler task.Handler) *Site {
	s := &Site{node: node, task: b.t, ctx: b.t.ctx, phase: phase, handler: handler}
	if uses := b.uses; uses != nil {
		b.uses = nil
		if err := b.open(s, uses); err != nil && b.err == nil {
			b.err = err
		}
	}
	b.t.sites = append(b.t.sites, s)
	return s
}

// Store returns a store by name.
func (b *Builder) Store(name string) (state.Store, error) { return b.t.env.Store(name) }

// Clock makes the stream time of a node.
func (b *Builder) Clock(node string) *Clock {
	c := newClock(node)
	b.t.clocks = append(b.t.clocks, c)
	return c
}
