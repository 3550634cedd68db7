package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace/millrace/txn/history"
)

// Bank moves money between accounts. An account is a partition, the accounts lie in all
// topics, and a transfer is a transaction of two records: so much less here, so much
// more there. In the end each transfer must be there as a whole or not at all, and the
// accounts together hold what they held, nothing.
func Bank(ctx context.Context, o Options) (Outcome, error) {
	return run(ctx, o, &bank{fates: map[string]history.Type{}, seen: map[string][]int64{}})
}

type bank struct {
	mu    sync.Mutex
	fates map[string]history.Type // by transfer; guarded by mu
	seen  map[string][]int64      // amounts by transfer
	total int64
}

func (b *bank) work(f *field, worker int, stop <-chan struct{}) error {
	rng := rand.New(rand.NewPCG(f.options.Seed, 1<<32+uint64(worker)))
	opts := append(f.connect(), kgo.TransactionalID(fmt.Sprintf("%s-x%d", f.name, worker)),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if flavourOf(worker).version1 && !f.options.OnlyVersion2 {
		opts = append(opts, kgo.MaxVersions(kversion.FromString("v3.9")))
	}
	var cl *kgo.Client
	defer func() {
		if cl != nil {
			cl.Close()
		}
	}()
	limit := time.Time{} // once it is over: until when one more transfer must succeed
	for n := 0; ; n++ {
		if cl == nil {
			var err error
			if cl, err = kgo.NewClient(opts...); err != nil {
				return fmt.Errorf("workload: client %d: %w", worker, err)
			}
		}
		if over(stop) && limit.IsZero() {
			limit = time.Now().Add(f.options.Patience)
		}
		id := fmt.Sprintf("%d-%d", worker, n)
		fate := b.transfer(f, cl, rng, id)
		b.mu.Lock()
		b.fates[id] = fate
		b.mu.Unlock()
		f.done(fate)
		if !limit.IsZero() && fate == history.OK {
			return nil
		}
		if !limit.IsZero() && time.Now().After(limit) {
			return fmt.Errorf("client %d could not work within %v", worker, f.options.Patience)
		}
		if fate == history.Info {
			cl.Close() // the next one takes the transactional id over
			cl = nil
		}
	}
}

// transfer is one transaction. Info stands also for a client that is of no more use.
func (b *bank) transfer(f *field, cl *kgo.Client, rng *rand.Rand, id string) history.Type {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := cl.BeginTransaction(); err != nil {
		return history.Info
	}
	from, to := f.keys[rng.IntN(len(f.keys))], f.keys[rng.IntN(len(f.keys))]
	amount := 1 + rng.Int64N(100)
	record := func(k history.Key, amount int64) *kgo.Record {
		return &kgo.Record{Topic: k.Topic, Partition: k.Partition, Key: []byte(id), Value: strconv.AppendInt(nil, amount, 10)}
	}
	err := cl.ProduceSync(ctx, record(from, -amount), record(to, amount)).FirstErr()
	if err != nil || rng.IntN(oneAbort) == 0 {
		if cl.AbortBufferedRecords(ctx) != nil || cl.EndTransaction(ctx, kgo.TryAbort) != nil {
			return history.Info
		}
		return history.Fail
	}
	if cl.EndTransaction(ctx, kgo.TryCommit) != nil {
		return history.Info
	}
	return history.OK
}

func (b *bank) record(r *kgo.Record) {
	amount, err := strconv.ParseInt(string(r.Value), 10, 64)
	if err != nil {
		amount = 0 // then the transfer is not whole
	}
	b.total += amount
	b.seen[string(r.Key)] = append(b.seen[string(r.Key)], amount)
}

func (b *bank) judge(o *Outcome) {
	count := map[history.Type]int{}
	for id, fate := range b.fates {
		count[fate]++
		got := b.seen[id]
		whole := len(got) == 2 && got[0] == -got[1]
		switch {
		case fate == history.OK && !whole:
			o.find("transfer %s is committed and shows %v", id, got)
		case fate == history.Fail && len(got) > 0:
			o.find("transfer %s is aborted and shows %v", id, got)
		case len(got) > 0 && !whole:
			o.find("transfer %s, of unknown outcome, shows %v", id, got)
		}
	}
	for id := range b.seen {
		if _, known := b.fates[id]; !known {
			o.find("nobody made transfer %s", id)
		}
	}
	if b.total != 0 {
		o.find("the accounts hold %d together, it must be 0", b.total)
	}
	o.Summary = fmt.Sprintf("bank: %d transfers committed, %d aborted, %d undecided, the accounts hold %d together",
		count[history.OK], count[history.Fail], count[history.Info], b.total)
}
