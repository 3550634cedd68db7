package cleaner

import (
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace/broker/internal/partition"
)

// candidate is a partition that is due.
type candidate struct {
	p     *partition.Partition
	ratio float64
}

// compact is a round of compaction: all partitions that are due, dirtiest first.
func (c *Cleaner) compact(nowMs int64) {
	var due []candidate
	greatest := 0.0
	for p := range c.o.Partitions {
		if !p.Compacts() {
			continue
		}
		err := p.RollIdle(nowMs)
		ratio, is, derr := p.Dirtiness(nowMs)
		if err = errors.Join(err, derr); err != nil {
			c.status.compacted(c.o.Logger, p.Name(), partition.Compacted{}, err)
			continue
		}
		greatest = max(greatest, ratio)
		if is {
			due = append(due, candidate{p, ratio})
		}
	}
	slices.SortStableFunc(due, func(a, b candidate) int {
		switch {
		case a.ratio > b.ratio:
			return -1
		case a.ratio < b.ratio:
			return 1
		}
		return 0
	})
	for _, d := range due {
		for more := true; more && !c.closed.Load(); {
			done, err := d.p.Compact(partition.Compaction{NowMs: nowMs, TableBytes: c.o.TableBytes, Pace: c.pace})
			c.status.compacted(c.o.Logger, d.p.Name(), done, err)
			more = done.More && err == nil
		}
	}
	c.status.compactionDone(greatest)
}

// paceChunk is how many bytes are read and written without a pause: few enough that a pause is short, many enough that timers cost
// nothing.
const paceChunk = 256 << 10

// pace holds compaction back to BytesPerSecond. It is told of every batch.
func (c *Cleaner) pace(bytes int) error {
	if c.closed.Load() {
		return partition.ErrStopped
	}
	if c.o.BytesPerSecond == 0 {
		return nil
	}
	if c.unpaced += int64(bytes); c.unpaced < min(paceChunk, c.o.BytesPerSecond) {
		return nil
	}
	over := make(chan struct{})
	timer := c.o.Clock.AfterFunc(time.Duration(float64(c.unpaced)/float64(c.o.BytesPerSecond)*float64(time.Second)), func() { close(over) })
	c.unpaced = 0
	select {
	case <-over:
		return nil
	case <-c.stop:
		timer.Stop()
		return partition.ErrStopped
	}
}
