package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/txn/history"
)

// Unique hands out ids: the place, partition and offset, at which a record was acknowledged. No two askers may get the
// same id, and each record must be where its asker was told.
func Unique(ctx context.Context, o Options) (Outcome, error) {
	return run(ctx, o, &unique{given: map[place]string{}, at: map[place]string{}})
}

// place is where a record is.
type place struct {
	key    history.Key
	offset int64
}

type unique struct {
	mu       sync.Mutex
	given    map[place]string // the id, to whom; guards: mu
	findings []string         // guarded by mu
	at       map[place]string // what the reading at the end finds
}

func (u *unique) work(f *field, worker int, stop <-chan struct{}) error {
	rng := rand.New(rand.NewPCG(f.options.Seed, 1<<34+uint64(worker)))
	cl, err := kgo.NewClient(append(f.connect(), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))...)
	if err != nil {
		return fmt.Errorf("workload: client %d: %w", worker, err)
	}
	defer cl.Close()
	for n := 0; ; n++ {
		last := over(stop)
		limit := patience
		if last {
			limit = f.options.Patience
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		k := f.keys[rng.IntN(len(f.keys))]
		r := &kgo.Record{Topic: k.Topic, Partition: k.Partition, Value: []byte(strconv.Itoa(worker) + "-" + strconv.Itoa(n))}
		err := cl.ProduceSync(ctx, r).FirstErr()
		cancel()
		if err != nil {
			f.done(history.Info)
		} else {
			u.give(place{k, r.Offset}, string(r.Value))
			f.done(history.OK)
		}
		if last && err != nil {
			return fmt.Errorf("client %d could not work within %v: %w", worker, limit, err)
		}
		if last {
			return nil
		}
	}
}

// give notes to whom an id was given.
func (u *unique) give(id place, to string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if other, taken := u.given[id]; taken {
		u.findings = append(u.findings, fmt.Sprintf("%v offset %d was given to %s and to %s", id.key, id.offset, other, to))
	}
	u.given[id] = to
}

func (u *unique) record(r *kgo.Record) {
	u.at[place{history.Key{Topic: r.Topic, Partition: r.Partition}, r.Offset}] = string(r.Value)
}

func (u *unique) judge(o *Outcome) {
	for _, f := range u.findings {
		o.find("%s", f)
	}
	for id, to := range u.given {
		if has, there := u.at[id]; !there || has != to {
			o.find("%v offset %d was given to %s, and holds %q", id.key, id.offset, to, has)
		}
	}
	if len(u.given) == 0 {
		o.find("no id was given")
	}
	o.Summary = fmt.Sprintf("unique: %d ids given, %d records", len(u.given), len(u.at))
}
