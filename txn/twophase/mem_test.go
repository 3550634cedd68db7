package twophase_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/txn/twophase"
)

// mem is a store in memory that survives the programs that use it: both a Decider and a Participant, with the promises of
// the contracts and no more.
type mem struct {
	mu       sync.Mutex
	owner    string
	state    twophase.PreparedState
	rows     map[int]bool
	prepared map[string][]int
	// fail is asked before a commit or prepare takes place, late after it.
	fail, late func() error
	finishErr  error
}

func newMem() *mem { return &mem{rows: map[int]bool{}, prepared: map[string][]int{}} }

// pending is a transaction of mem.
type pending struct{ add []int }

func (p *pending) Insert(n int) { p.add = append(p.add, n) }

func (m *mem) Claim(_ context.Context, _, owner string) (twophase.PreparedState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if twophase.Older(owner, m.owner) {
		return twophase.PreparedState{}, fmt.Errorf("%w: claimed by %s", twophase.ErrFenced, m.owner)
	}
	m.owner = owner
	return m.state, nil
}

func asked(f func() error) error {
	if f == nil {
		return nil
	}
	return f()
}

func (m *mem) Commit(_ context.Context, _, owner string, work func(*pending) (twophase.PreparedState, error)) error {
	var p pending
	state, err := work(&p)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := asked(m.fail); err != nil {
		return err
	}
	if m.owner != owner {
		return fmt.Errorf("%w: owner %s", twophase.ErrFenced, m.owner)
	}
	if state.Any() {
		m.state = state
	}
	m.put(p.add)
	return asked(m.late)
}

func (m *mem) put(ns []int) {
	for _, n := range ns {
		if m.rows[n] {
			panic(fmt.Sprintf("row %d twice", n))
		}
		m.rows[n] = true
	}
}

func (m *mem) Prepare(_ context.Context, gid string, work func(*pending) error) error {
	var p pending
	if err := work(&p); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := asked(m.fail); err != nil {
		return err
	}
	if _, twice := m.prepared[gid]; twice {
		return errors.New("gid " + gid + " twice")
	}
	m.prepared[gid] = p.add
	return asked(m.late)
}

func (m *mem) Finish(_ context.Context, gid string, commit bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.finishErr != nil {
		return m.finishErr
	}
	if commit {
		m.put(m.prepared[gid])
	}
	delete(m.prepared, gid)
	return nil
}

func (m *mem) Prepared(_ context.Context, prefix string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var gids []string
	for _, gid := range slices.Sorted(maps.Keys(m.prepared)) {
		if strings.HasPrefix(gid, prefix) {
			gids = append(gids, gid)
		}
	}
	return gids, nil
}

func (m *mem) has() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.rows))
}

func (m *mem) open() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.prepared)
}
