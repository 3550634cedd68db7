package workload

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/txn/history"
)

// Counter adds up. It is [Copy] with a state: of each partition the members of a group count the records, and write in the
// transaction of a batch how far they have come, "from 40 to 47". Whoever takes a partition over reads the last count from
// the log. A count that two members raised from the same number, or that was raised and forgotten, is a lost update; it
// shows as a break in the chain, or as a sum that is not the number of records.
func Counter(ctx context.Context, o Options) (Outcome, error) {
	o, c := newCopying(o)
	w := &counting{copying: c, chain: map[int32][]step{}}
	c.outputs = w.count
	return run(ctx, o, w)
}

// step is one raise of a partition's count.
type step struct{ from, to int64 }

type counting struct {
	*copying
	chain map[int32][]step // what the reading at the end finds
	mu    sync.Mutex       // guards odd
	odd   []string         // counts that were not those of the offset they were committed with
}

// count raises the counts of the partitions that a batch is of. The count is read from the log each time, so that it is
// the log alone that keeps it.
func (c *counting) count(ctx context.Context, f *field, records []*kgo.Record) ([]*kgo.Record, error) {
	more, first := map[int32]int64{}, map[int32]int64{}
	for _, r := range records {
		if more[r.Partition] == 0 {
			first[r.Partition] = r.Offset
		}
		more[r.Partition]++
	}
	var keys []history.Key
	for p := range more {
		keys = append(keys, history.Key{Topic: f.topics[1], Partition: p})
	}
	counts, err := lastCounts(ctx, f, keys)
	if err != nil {
		return nil, err
	}
	var out []*kgo.Record
	for p, n := range more {
		now := counts[p]
		// Nothing but records is in the input, so the count of a partition is its offset.
		if now != first[p] {
			c.mu.Lock()
			c.odd = append(c.odd, fmt.Sprintf("partition %d: the count is %d where the group is at %d: they did not move together", p, now, first[p]))
			c.mu.Unlock()
		}
		out = append(out, &kgo.Record{Partition: p, Value: fmt.Appendf(nil, "%d %d", now, now+n)})
	}
	return out, nil
}

// lastCounts reads the last committed count of each partition. What is undecided is waited for: the group's offset may be
// known to be committed before the count beside it is visible.
func lastCounts(ctx context.Context, f *field, keys []history.Key) (map[int32]int64, error) {
	listed, err := f.admin.ListEndOffsets(ctx, f.topics[1])
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("ends of the counts: %w", err)
	}
	ends, at := map[history.Key]int64{}, map[history.Key]int64{}
	for _, k := range keys {
		end, _ := listed.Lookup(k.Topic, k.Partition)
		ends[k] = end.Offset
		at[k] = max(end.Offset-recentCounts, 0)
	}
	counts := map[int32]int64{}
	for _, from := range []map[history.Key]int64{at, {}} { // the tail first; all of it where that held aborted ones only
		err = f.scanFrom(ctx, keys, from, ends, func() {}, func(records []*kgo.Record) {
			for _, r := range records {
				var s step
				if _, bad := fmt.Sscanf(string(r.Value), "%d %d", &s.from, &s.to); !r.Attrs.IsControl() && bad == nil {
					counts[r.Partition] = s.to
				}
			}
		})
		if err != nil || len(counts) == len(keys) {
			return counts, err
		}
	}
	return counts, nil
}

// recentCounts is how many records back a count is looked for first.
const recentCounts = 40

func (c *counting) record(r *kgo.Record) {
	if r.Topic[len(r.Topic)-1] == '0' { // the input
		c.copying.record(r)
		return
	}
	var s step
	if _, err := fmt.Sscanf(string(r.Value), "%d %d", &s.from, &s.to); err != nil {
		s = step{-1, -1}
	}
	c.chain[r.Partition] = append(c.chain[r.Partition], s)
}

func (c *counting) judge(o *Outcome) {
	var total int64
	for p := range c.sent {
		want, at := c.sent[p].Load(), int64(0)
		for _, s := range c.chain[int32(p)] {
			if s.from != at {
				o.find("partition %d: lost update: the count goes on from %d, it was %d", p, s.from, at)
			}
			at = s.to
		}
		if at != want {
			o.find("partition %d: lost update: the count is %d, %d records were acknowledged", p, at, want)
		}
		total += at
	}
	for _, odd := range c.odd {
		o.find("%s", odd)
	}
	if c.commits.Load() == 0 {
		o.find("nothing was counted")
	}
	o.Summary = fmt.Sprintf("counter: counted to %d in %d transactions, %d aborted, members died %d times", total, c.commits.Load(), c.aborts.Load(), c.deaths.Load())
}
