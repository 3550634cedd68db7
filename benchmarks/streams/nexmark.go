package main

import (
	"context"
	"encoding/json/v2"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/streams/nexmark"
)

// nexmarkEvents is how many events the queries read at scale 1: persons, auctions and bids together.
const nexmarkEvents = 300_000

// nexmarkSpan is how many seconds of their own time the events take, however many they are: there are windows to close.
const nexmarkSpan = 30

func auctionHouse(events int64) nexmark.Config {
	return nexmark.Config{Seed: 1, Rate: max(1, events/nexmarkSpan)}
}

// nexmarkTopics have them, on every broker.
var nexmarkTopics = nexmark.Topics{Persons: "persons", Auctions: "auctions", Bids: "bids"}

// everyWindow lets Kafka Streams give the final results of a window when it closes, not at most once a second.
const everyWindow = "__emit.interval.ms.kstreams.windowed.aggregation__:0"

var queryTexts = map[string]string{
	"q0": "pass bids on", "q1": "convert prices", "q2": "pick auctions", "q3": "foreign-key join of auctions and persons",
	"q4": "average price by category", "q5": "auctions with most bids, hopping windows", "q6": "average of a seller's last ten",
	"q7": "highest bids of each ten seconds", "q8": "newcomers who sell, windowed cogroup",
}

func nexmarkWork() []work {
	var all []work
	for _, q := range nexmark.Names {
		what := q + ", " + queryTexts[q]
		all = append(all, work{name: q, sides: streamsSides, limit: 2 * time.Minute, figures: []figures.Figure{
			figures.More(q, what, "rec/s"),
			figures.Less(q+"-cpu", what+": CPU of the job per record", "µs"),
			figures.Less(q+"-peak", what+": most memory of the job", "MB"),
		}, run: func(ctx context.Context, b *bench) error { return b.query(ctx, q) }})
	}
	return all
}

// loadNexmark fills the three topics.
func loadNexmark(ctx context.Context, c cluster, n int64) error {
	t := nexmarkTopics
	if err := c.create(ctx, t.Persons, t.Auctions, t.Bids); err != nil {
		return err
	}
	var failed error
	record := func(r *kgo.Record, topic string, key, ms int64, v any) {
		value, err := json.Marshal(v)
		failed = errors.Join(failed, err)
		r.Topic, r.Key, r.Value, r.Timestamp = topic, nexmark.Key(key), value, time.UnixMilli(ms)
	}
	house := auctionHouse(n)
	ends := house.Ends(n, partitions)
	at := int64(0)
	err := c.load(ctx, "", n+int64(len(ends)), func(r *kgo.Record) {
		e := nexmark.Event{}
		if at < n {
			e = house.At(at)
		} else {
			e.Bid = ends[at-n]
		}
		at++
		switch {
		case e.Person != nil:
			record(r, t.Persons, e.Person.ID, e.Person.DateTime, e.Person)
		case e.Auction != nil:
			record(r, t.Auctions, e.Auction.ID, e.Auction.DateTime, e.Auction)
		default:
			record(r, t.Bids, e.Bid.Auction, e.Bid.DateTime, e.Bid)
		}
	})
	return errors.Join(err, failed)
}

// query runs a query over all events, until nothing more comes out, and compares what came with the oracle.
func (b *bench) query(ctx context.Context, q string) (err error) {
	t := nexmarkTopics
	reads := t.Reads(q)
	total, err := b.count(ctx, reads)
	if err != nil {
		return err
	}
	s := b.spec(q, strings.Join([]string{t.Persons, t.Auctions, t.Bids}, ","), total)
	s.cached, s.settings = true, everyWindow
	if err := errors.Join(b.create(ctx, s.out), os.MkdirAll(s.dir, 0o755)); err != nil {
		return err
	}
	p, err := b.startJob(s, b.broker)
	if err != nil {
		return err
	}
	ended := false
	defer func() {
		if !ended {
			err = errors.Join(err, p.kill())
		}
	}()
	first, err := p.await(ctx, "first")
	if err == nil {
		_, err = p.await(ctx, "last")
	}
	if err == nil {
		err = b.cluster.committed(ctx, s.id, reads...)
	}
	if err != nil {
		return err
	}
	done, err := b.answered(ctx, q, s.out, p)
	if err != nil {
		return err
	}
	peak := p.PeakMB()
	ended = true
	if err := p.stop(); err != nil {
		return err
	}
	again, err := p.again(total)
	if err != nil {
		return err
	}
	b.repeated(q, again)
	b.put(q, perSecond(total, first, done))
	b.put(q+"-cpu", micros(done.job-first.job, total))
	b.put(q+"-peak", peak)
	return nil
}

// answered waits until the results of a query are those of the oracle, and is the mark of when the last of them came. The
// job may be at work behind topics of its own when all of its input is committed, and on a busy machine be silent for
// longer than enough: so a wrong answer is final only when it has stayed the same for patience times as long.
func (b *bench) answered(ctx context.Context, q, out string, p *process) (done mark, err error) {
	const patience = 5
	n := b.sized(nexmarkEvents)
	g := growth{size: -1}
	for range patience {
		if err := b.quiet(ctx, out, p, &g); err != nil {
			return g.since, err
		}
		check := auctionHouse(n).NewCheck(q, n, partitions)
		err = b.cluster.results(ctx, out, func(r *kgo.Record) error { return check.Take(r.Key, r.Value) })
		if err = errors.Join(err, check.Done()); err == nil {
			return g.since, nil
		}
	}
	return g.since, err // a query with a wrong result has no figures
}

// count is how many records topics have that nobody writes in transactions.
func (b *bench) count(ctx context.Context, topics []string) (total int64, err error) {
	for _, t := range topics {
		_, sum, err := b.ends(ctx, t)
		if err != nil {
			return 0, err
		}
		total += sum
	}
	return total, nil
}

// enough is how long nothing may come out until we take it that nothing will.
const enough = 2 * time.Second

// growth is how large a topic is, and since when.
type growth struct {
	size  int64
	since mark
}

// quiet waits until a topic has not grown for some time.
func (b *bench) quiet(ctx context.Context, topic string, p *process, g *growth) error {
	for until := time.Now().Add(enough); time.Now().Before(until); {
		_, size, err := b.ends(ctx, topic)
		if err != nil {
			return err
		}
		if size != g.size {
			*g = growth{size, p.now()}
			until = g.since.at.Add(enough)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
