package cleaner

import (
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/broker/internal/compact"
	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/clock"
)

// Options of a Cleaner.
type Options struct {
	// Partitions gives those that are open now; it may be called at any time.
	Partitions iter.Seq[*partition.Partition]
	// RetentionEvery is how often retention looks [log.retention.check.interval.ms]. 0 is 5 minutes.
	RetentionEvery time.Duration
	// CompactEvery is how often compaction looks [log.cleaner.backoff.ms]. 0 is 15 seconds.
	CompactEvery time.Duration
	// ProducersAfter is how long a producer must be quiet to be forgotten [producer.id.expiration.ms]. 0 is a day.
	ProducersAfter time.Duration
	// ProducersEvery is how often such producers are looked for [producer.id.expiration.check.interval.ms]. 0 is 10 minutes.
	ProducersEvery time.Duration
	// TableBytes bounds the table of keys of a round [log.cleaner.dedupe.buffer.size]. 0 is 64 MiB; it takes what it needs.
	TableBytes int
	// BytesPerSecond bounds what compaction reads and writes [log.cleaner.io.max.bytes.per.second]. 0 is no bound.
	BytesPerSecond int64
	Clock          clock.Clock  // nil is the system's
	Logger         *slog.Logger // nil discards

	// passed is the time since the start that no setting of the clock changes; nil takes it from the clock's monotonic reading.
	passed func() time.Duration
}

// Validate names the field that is missing or out of its limits.
func (o Options) Validate() error {
	switch {
	case o.Partitions == nil:
		return fmt.Errorf("cleaner: Partitions is nil")
	case o.RetentionEvery < 0:
		return fmt.Errorf("cleaner: RetentionEvery is %v, must not be negative", o.RetentionEvery)
	case o.CompactEvery < 0:
		return fmt.Errorf("cleaner: CompactEvery is %v, must not be negative", o.CompactEvery)
	case o.ProducersAfter < 0:
		return fmt.Errorf("cleaner: ProducersAfter is %v, must not be negative", o.ProducersAfter)
	case o.ProducersEvery < 0:
		return fmt.Errorf("cleaner: ProducersEvery is %v, must not be negative", o.ProducersEvery)
	case o.TableBytes != 0 && o.TableBytes < compact.MinTableBytes:
		return fmt.Errorf("cleaner: TableBytes is %d, must be at least %d", o.TableBytes, compact.MinTableBytes)
	case o.BytesPerSecond < 0:
		return fmt.Errorf("cleaner: BytesPerSecond is %d, must not be negative", o.BytesPerSecond)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.RetentionEvery == 0 {
		o.RetentionEvery = 5 * time.Minute
	}
	if o.CompactEvery == 0 {
		o.CompactEvery = 15 * time.Second
	}
	if o.ProducersAfter == 0 {
		o.ProducersAfter = 24 * time.Hour
	}
	if o.ProducersEvery == 0 {
		o.ProducersEvery = 10 * time.Minute
	}
	if o.TableBytes == 0 {
		o.TableBytes = 64 << 20
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Cleaner cleans the partitions of a broker.
type Cleaner struct {
	o      Options
	wake   chan struct{} // holds one: there is work
	stop   chan struct{}
	ended  sync.WaitGroup
	closed atomic.Bool

	retention, compaction, producers alarm

	// The goroutine's own.
	began   time.Time
	guard   guard
	ahead   bool  // the clock is doubted; said once
	unpaced int64 // bytes since the last pause of compaction

	status status
}

// Start starts a cleaner. Its first rounds come one interval later.
func Start(o Options) (*Cleaner, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c := &Cleaner{o: o.withDefaults(), wake: make(chan struct{}, 1), stop: make(chan struct{})}
	c.began = c.o.Clock.Now()
	c.nowMs() // a clock that is set before the first round is doubted too
	c.retention.set(c, c.o.RetentionEvery)
	c.compaction.set(c, c.o.CompactEvery)
	c.producers.set(c, c.o.ProducersEvery)
	if clock.Driven(c.o.Clock) == nil {
		c.ended.Go(c.run)
	}
	return c, nil
}

// Close ends the cleaner. What it is at is given up at the next batch, which leaves the log as it was.
func (c *Cleaner) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	close(c.stop)
	c.silence()
	c.ended.Wait()
	c.silence() // a round may have set one more
	return nil
}

// alarm is a kind of round that is due again and again.
type alarm struct {
	due   atomic.Bool
	timer atomic.Pointer[timer]
}

type timer struct{ clock.Timer }

// set makes the alarm go off after a while.
func (a *alarm) set(c *Cleaner, after time.Duration) {
	a.timer.Store(&timer{c.o.Clock.AfterFunc(after, func() {
		a.due.Store(true)
		if clock.Driven(c.o.Clock) != nil {
			if !c.closed.Load() {
				c.rounds()
			}
			return
		}
		select {
		case c.wake <- struct{}{}:
		default: // it will look
		}
	})})
}

func (c *Cleaner) run() {
	for {
		select {
		case <-c.stop:
			return
		case <-c.wake:
		}
		c.rounds()
	}
}

// rounds does what is due.
func (c *Cleaner) rounds() {
	if c.retention.due.Swap(false) {
		c.retain(c.nowMs())
		c.retention.set(c, c.o.RetentionEvery)
	}
	if c.compaction.due.Swap(false) {
		c.compact(c.nowMs())
		c.compaction.set(c, c.o.CompactEvery)
	}
	if c.producers.due.Swap(false) {
		c.forget(c.nowMs())
		c.producers.set(c, c.o.ProducersEvery)
	}
}

func (c *Cleaner) silence() {
	c.retention.timer.Load().Stop()
	c.compaction.timer.Load().Stop()
	c.producers.timer.Load().Stop()
}

// nowMs is the time that records may be removed by.
func (c *Cleaner) nowMs() int64 {
	now := c.o.Clock.Now()
	passed := now.Sub(c.began)
	if c.o.passed != nil {
		passed = c.o.passed()
	}
	ms, ahead := c.guard.read(now.UnixMilli(), passed)
	if doubted := ahead > 0; doubted != c.ahead {
		c.ahead = doubted
		if doubted {
			c.o.Logger.Warn("the clock was set ahead: retention and the expiry of producers do not follow it until it is right again, the broker restarts, or a day has passed",
				"by", ahead)
		} else {
			c.o.Logger.Info("retention follows the clock again")
		}
	}
	return ms
}

// retain is a round of retention.
func (c *Cleaner) retain(nowMs int64) {
	names := map[string]bool{}
	for p := range c.o.Partitions {
		if c.closed.Load() {
			return
		}
		names[p.Name()] = true
		r, err := p.Retain(nowMs)
		c.status.retained(c.o.Logger, p.Name(), r, err)
	}
	c.status.retentionDone(names)
}
