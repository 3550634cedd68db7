package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/millrace/millrace/core/partition"
)

// Units says how many units a store has.
func (j *Job) Units(store string) (int32, error) {
	sub, err := j.run.desk.store(store)
	if err != nil {
		return 0, err
	}
	return j.run.desk.units(sub), nil
}

// UnitOf is the unit of a key, where keys are partitioned as Kafka's clients do it.
func (j *Job) UnitOf(store string, key []byte) (int32, error) {
	n, err := j.Units(store)
	if err != nil {
		return 0, err
	}
	return partition.ForKey(key, n), nil
}

// Where says where a unit of a store is.
func (j *Job) Where(store string, unit int32) (Place, error) {
	sub, err := j.run.desk.store(store)
	if err != nil {
		return Place{}, err
	}
	return j.run.desk.place(taskID{sub, unit}), nil
}

// Lags tells what each copy in this process lacks, and what each store that is being
// restored does, by unit.
func (j *Job) Lags() map[int32]int64 {
	d := j.run.desk
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[int32]int64{}
	for _, p := range d.places {
		maps.Copy(all, p.keeper.lag())
	}
	return all
}

// Local answers from this process. ErrNotHere says that it cannot.
func (j *Job) Local(ctx context.Context, ask Ask) (Answer, error) {
	sub, err := j.run.desk.store(ask.Store)
	if err != nil {
		return Answer{}, err
	}
	q := &question{Ask: ask, id: taskID{sub, ask.Unit}, ctx: ctx, reply: make(chan reply, 1)}
	a, err := j.run.desk.running(q)
	if errors.Is(err, ErrNotHere) && ask.Stale >= 0 && len(ask.Seen) == 0 {
		return j.run.desk.copied(q)
	}
	return a, err
}

// Remote asks another process.
type Remote func(ctx context.Context, addr string, ask Ask) (Answer, error)

// Query answers from wherever the rows are, this process first. It waits, as long as
// ctx allows, while they are on their way from one process to another.
func (j *Job) Query(ctx context.Context, ask Ask, remote Remote) (Answer, error) {
	for {
		a, err := j.Local(ctx, ask)
		if !errors.Is(err, ErrNotHere) {
			return a, err
		}
		if place, werr := j.Where(ask.Store, ask.Unit); werr == nil {
			if a, rerr := j.elsewhere(ctx, ask, place, remote); !errors.Is(rerr, ErrNotHere) {
				return a, rerr
			}
			if place.Known && place.Addr == "" && !place.Here {
				return Answer{}, fmt.Errorf("%w: unit %d of store %s runs in a process that answers no queries", ErrNotHere, ask.Unit, ask.Store)
			}
		}
		select {
		case <-ctx.Done():
			return Answer{}, fmt.Errorf("%w: unit %d of store %s: %w", ErrNotHere, ask.Unit, ask.Store, ctx.Err())
		case <-j.done:
			return Answer{}, ErrEnded
		case <-time.After(moving):
		}
	}
}

// elsewhere asks the other processes that may know.
func (j *Job) elsewhere(ctx context.Context, ask Ask, p Place, remote Remote) (Answer, error) {
	if remote == nil {
		return Answer{}, ErrNotHere
	}
	addrs := []string{p.Addr}
	if ask.Stale >= 0 && len(ask.Seen) == 0 {
		addrs = append(addrs, p.Standbys...)
	}
	err := error(ErrNotHere)
	for _, addr := range addrs {
		if addr == "" || addr == j.run.desk.self {
			continue
		}
		var a Answer
		if a, err = remote(ctx, addr, ask); err == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			break
		}
		err = fmt.Errorf("%w: %w", ErrNotHere, err)
	}
	return Answer{}, err
}
