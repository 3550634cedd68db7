package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/txn/history"
)

// Order writes to keys. Each client has keys of its own, of which the partitioner makes partitions, and counts in each, in
// transactions that it aborts at times. A reader must find the numbers of a key in one partition, in order and without a
// gap; what was aborted is counted again.
func Order(ctx context.Context, o Options) (Outcome, error) {
	o.Topics = 1
	return run(ctx, o, &ordering{committed: map[string]int64{}, unknown: map[string]int64{}, seen: map[string][]spot{}})
}

// spot is a number, and where it was found.
type spot struct {
	partition int32
	number    int64
}

type ordering struct {
	mu        sync.Mutex
	committed map[string]int64  // by key: numbers that are committed; guarded by mu
	unknown   map[string]int64  // how many more there are if the last transaction committed; guarded by mu
	seen      map[string][]spot // what the reading at the end finds
	commits   int64
}

// ownKeys is how many keys a client writes to at a time.
const ownKeys = 5

func (o *ordering) work(f *field, worker int, stop <-chan struct{}) error {
	rng := rand.New(rand.NewPCG(f.options.Seed, 1<<35+uint64(worker)))
	life := 0 // keys are given up when nobody knows what became of their last numbers
	key := func(i int) string { return fmt.Sprintf("%d-%d-%d", worker, life, i) }
	var cl *kgo.Client
	defer func() {
		if cl != nil {
			cl.Close()
		}
	}()
	var limit time.Time
	for {
		if cl == nil {
			var err error
			cl, err = kgo.NewClient(append(f.connect(), kgo.TransactionalID(fmt.Sprintf("%s-x%d", f.name, worker)), kgo.DefaultProduceTopic(f.topics[0]), kgo.ProducerLinger(0))...)
			if err != nil {
				return fmt.Errorf("workload: client %d: %w", worker, err)
			}
		}
		if over(stop) && limit.IsZero() {
			limit = time.Now().Add(f.options.Patience)
		}
		numbers := map[string]int64{}
		for range 1 + rng.IntN(2*ownKeys) {
			numbers[key(rng.IntN(ownKeys))]++
		}
		fate := o.write(cl, rng, numbers)
		f.done(fate)
		switch {
		case !limit.IsZero() && fate == history.OK:
			return nil
		case !limit.IsZero() && time.Now().After(limit):
			return fmt.Errorf("client %d could not work within %v", worker, f.options.Patience)
		case fate == history.Info:
			cl.Close() // the next one takes the transactional id over
			cl = nil
			life++
		}
	}
}

// write is one transaction that goes on counting in some keys.
func (o *ordering) write(cl *kgo.Client, rng *rand.Rand, more map[string]int64) history.Type {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if cl.BeginTransaction() != nil {
		return history.Info
	}
	var records []*kgo.Record
	o.mu.Lock()
	for key, n := range more {
		for i := range n {
			records = append(records, &kgo.Record{Key: []byte(key), Value: strconv.AppendInt(nil, o.committed[key]+i, 10)})
		}
	}
	o.mu.Unlock()
	err := cl.ProduceSync(ctx, records...).FirstErr()
	if err != nil || rng.IntN(oneAbort) == 0 {
		if cl.AbortBufferedRecords(ctx) != nil || cl.EndTransaction(ctx, kgo.TryAbort) != nil {
			return o.note(more, history.Info)
		}
		return history.Fail
	}
	if cl.EndTransaction(ctx, kgo.TryCommit) != nil {
		return o.note(more, history.Info)
	}
	return o.note(more, history.OK)
}

func (o *ordering) note(more map[string]int64, fate history.Type) history.Type {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, n := range more {
		if fate == history.OK {
			o.committed[key] += n
		} else {
			o.unknown[key] = n
		}
	}
	if fate == history.OK {
		o.commits++
	}
	return fate
}

func (o *ordering) record(r *kgo.Record) {
	n, err := strconv.ParseInt(string(r.Value), 10, 64)
	if err != nil {
		n = -1
	}
	o.seen[string(r.Key)] = append(o.seen[string(r.Key)], spot{r.Partition, n})
}

func (o *ordering) judge(out *Outcome) {
	records := 0
	for key, spots := range o.seen {
		records += len(spots)
		for i, s := range spots {
			if s.partition != spots[0].partition {
				out.find("key %s is in partitions %d and %d", key, spots[0].partition, s.partition)
				break
			}
			if s.number != int64(i) {
				out.find("key %s has %d in the place of %d: lost, doubled or out of order", key, s.number, i)
				break
			}
		}
	}
	for key, n := range o.committed {
		if got := int64(len(o.seen[key])); got != n && got != n+o.unknown[key] {
			out.find("key %s has %d numbers, %d are committed and %d of unknown outcome", key, got, n, o.unknown[key])
		}
	}
	if o.commits == 0 {
		out.find("nothing was written")
	}
	out.Summary = fmt.Sprintf("order: %d numbers in %d keys, %d transactions committed", records, len(o.seen), o.commits)
}
