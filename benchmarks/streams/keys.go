package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/streams/clicks"
)

// How many keys are in the state, and how many records are then counted, at scale 1.
const (
	manyKeys     = 1_000_000
	manyKeysLong = 100_000_000
	keyedRecords = 500_000
)

func keysWork() []work {
	var all []work
	for _, c := range []struct {
		name, what, store string
		many              bool
	}{
		{"keys-few", "count, 10,000 keys in the state, Pebble", pebbleStore, false},
		{"keys-many", "count, many keys in the state, Pebble", pebbleStore, true},
		{"keys-many-goleveldb", "count, many keys in the state, goleveldb", "", true},
	} {
		all = append(all, work{name: "keys", sides: []figures.Side{ours}, limit: 3 * time.Minute, figures: []figures.Figure{
			figures.More(c.name, c.what, "rec/s"),
			figures.Less(c.name+"-cpu", c.what+": CPU of the job per record", "µs"),
			figures.Less(c.name+"-peak", c.what+": most memory of the job", "MB"),
		}, run: func(ctx context.Context, b *bench) error { return b.keys(ctx, c.name, c.store, c.many) }})
	}
	return all
}

// keys counts records of random keys when every key has its row already: first one record for each key, then those that
// are timed.
func (b *bench) keys(ctx context.Context, name, store string, many bool) error {
	keys, timed := int64(clicks.Users), b.sized(keyedRecords)
	switch {
	case many && b.long:
		keys = manyKeysLong
	case many:
		keys = b.sized(manyKeys)
	}
	in := b.id + "-in"
	s := b.spec(clicks.Count, in, keys+timed)
	s.middle, s.cached, s.store = keys, true, store
	if err := b.create(ctx, in, s.out); err != nil {
		return err
	}
	rng, n := rand.New(rand.NewPCG(1, 2)), int64(0)
	counts := map[int64]int64{} // of the timed records
	err := b.load(ctx, in, s.total, func(r *kgo.Record) {
		key := n
		if n >= keys {
			key = rng.Int64N(keys)
			counts[key]++
		}
		n++
		r.Key, r.Value = clicks.AppendUser(nil, int(key)), []byte("click")
	})
	if err != nil {
		return err
	}
	o, err := b.toTheEnd(ctx, s)
	if err != nil {
		return err
	}
	if o.again > 0 {
		return fmt.Errorf("%d records were processed again: when all keys had their row is not known", o.again)
	}
	last := map[string]int64{}
	err = b.cluster.results(ctx, s.out, func(r *kgo.Record) (err error) {
		last[string(r.Key)], err = clicks.Long(r.Value)
		return err
	})
	if err != nil {
		return err
	}
	for key, n := range counts {
		if got := last[string(clicks.AppendUser(nil, int(key)))]; got != n+1 {
			return fmt.Errorf("key %d is counted %d times, %d are true", key, got, n+1)
		}
	}
	b.put(name, perSecond(timed, o.middle, o.last))
	b.put(name+"-cpu", micros(o.committed.job-o.middle.job, timed))
	b.put(name+"-peak", o.peakMB)
	b.sheet.Notes[name] = fmt.Sprintf("%d keys in the state, then %d records of random ones", keys, timed)
	return nil
}
