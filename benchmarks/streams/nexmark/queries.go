package nexmark

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/streams"
)

// Topics are where the events are: persons and auctions by their own id, bids by that of their auction.
type Topics struct{ Persons, Auctions, Bids string }

// Names are the queries, in order.
var Names = []string{"q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8"}

// Reads says which topics a query reads.
func (t Topics) Reads(query string) []string {
	switch query {
	case "q3", "q8":
		return []string{t.Persons, t.Auctions}
	case "q4", "q6":
		return []string{t.Auctions, t.Bids}
	}
	return []string{t.Bids}
}

// grace is for records that come late, late enough for those that have gone through a topic between.
const (
	grace     = 4 * time.Second
	longGrace = 24 * time.Hour
)

// query is a query under construction.
type query struct {
	app    *streams.App
	topics Topics
	out    string
	seen   func()
	cached []streams.Opt
}

func (q query) persons() streams.Stream[int64, Person] { return source[Person](q, q.topics.Persons) }
func (q query) auctions() streams.Stream[int64, Auction] {
	return source[Auction](q, q.topics.Auctions)
}
func (q query) bids() streams.Stream[int64, Bid] { return source[Bid](q, q.topics.Bids) }

func source[V any](q query, topic string) streams.Stream[int64, V] {
	return q.app.Stream[int64, V](topic).Peek(func(int64, V) { q.seen() })
}

// as names a table, behind a cache if the query has one.
func (q query) as(name string) []streams.Opt { return append(slices.Clone(q.cached), streams.As(name)) }

// Query builds a query that writes its results to a topic. Updates of tables are merged per commit for up to cached keys; 0
// sends each. seen is called for each event.
func Query(name, id string, t Topics, out string, cached int, seen func()) (*streams.App, error) {
	q := query{app: streams.New(id), topics: t, out: out, seen: seen}
	if cached > 0 {
		q.cached = []streams.Opt{streams.Cached(cached)}
	}
	build, ok := map[string]func(query){"q0": q0, "q1": q1, "q2": q2, "q3": q3, "q4": q4, "q5": q5, "q6": q6, "q7": q7, "q8": q8}[name]
	if !ok {
		return nil, fmt.Errorf("nexmark: there is no query %q", name)
	}
	build(q)
	return q.app, nil
}

// q0 passes bids on.
func q0(q query) { q.bids().To(q.out) }

// q1 converts prices to euros.
func q1(q query) { q.bids().MapValues(inEuros).To(q.out) }

func inEuros(b Bid) Bid {
	b.Price = b.Price * 908 / 1000
	return b
}

// q2 picks some auctions.
func q2(q query) {
	q.bids().Filter(picked).MapValues(func(b Bid) Price { return Price{b.Auction, b.Price} }).To(q.out)
}

func picked(b Bid) bool { return b.Auction%123 == 0 }

// q3 finds who sells what in three states.
func q3(q query) {
	people := q.persons().Filter(nearby).ToTable(streams.As("people"))
	q.auctions().Filter(func(a Auction) bool { return a.Category == firstCategory }).ToTable(streams.As("items")).
		JoinFK(people, func(_ int64, a Auction) int64 { return a.Seller }, offer, streams.As("offers")).
		To(q.out)
}

func nearby(p Person) bool            { return p.State == "OR" || p.State == "ID" || p.State == "CA" }
func offer(a Auction, p Person) Offer { return Offer{p.Name, p.City, p.State, a.ID} }

// sale is the best bid for an auction so far.
type sale struct {
	Auction, Category, Seller, Expires, Price int64
}

// sales are the auctions with their best valid bids.
func sales(q query) streams.Table[int64, sale] {
	auctions := q.auctions().ToTable(streams.As("auction-rows"))
	return q.bids().
		JoinTable(auctions, func(b Bid, a Auction) sale {
			s := sale{a.ID, a.Category, a.Seller, a.Expires, b.Price}
			if !valid(b, a) {
				s.Price = 0
			}
			return s
		}, streams.As("bids-of-auctions")).
		Filter(func(s sale) bool { return s.Price > 0 }).
		GroupByKey().
		Reduce(func(a, b sale) sale {
			if b.Price > a.Price {
				return b
			}
			return a
		}, q.as("sales")...)
}

// valid bids come while their auction is open.
func valid(b Bid, a Auction) bool { return a.DateTime < b.DateTime && b.DateTime <= a.Expires }

// q4 averages the prices of each category.
func q4(q query) {
	type mean struct{ Sum, N int64 }
	sales(q).
		GroupBy(func(_ int64, s sale) (category, price int64) { return s.Category, s.Price }, streams.As("by-category")).
		Aggregate(streams.Balance(
			func() mean { return mean{} },
			func(m mean, price int64) mean { return mean{m.Sum + price, m.N + 1} },
			func(m mean, price int64) mean { return mean{m.Sum - price, m.N - 1} },
		), q.as("means")...).
		MapValues(func(m mean) int64 { return m.Sum / max(1, m.N) }).
		To(q.out)
}

// q5 finds the auctions with the most bids of the last ten seconds, every two seconds.
func q5(q query) {
	q.bids().GroupByKey().
		Windowed(streams.Hopping(10*time.Second, 2*time.Second, streams.Grace(grace))).
		Count(streams.As("bids-of-window")).
		OnClose().
		Map(func(w streams.Window, auction, n int64) (int64, Hot) {
			return w.Start.UnixMilli(), Hot{n, []int64{auction}}
		}).
		GroupByKey(streams.As("by-window")).
		Reduce(Hot.better, q.as("hottest")...).
		To(q.out)
}

// q6 averages the prices of each seller's last ten auctions.
func q6(q query) {
	sales(q).
		GroupBy(func(_ int64, s sale) (int64, sale) { return s.Seller, s }, streams.As("by-seller")).
		Aggregate(streams.Balance(
			func() []sale { return []sale{} },
			func(all []sale, s sale) []sale {
				i, _ := slices.BinarySearchFunc(all, s, sale.later)
				return slices.Insert(all, i, s)
			},
			func(all []sale, s sale) []sale {
				return slices.DeleteFunc(all, func(o sale) bool { return o.Auction == s.Auction })
			},
		), q.as("sales-of-sellers")...).
		MapValues(lastTen).
		To(q.out)
}

// later orders sales by the end of their auction, the last one first.
func (s sale) later(o sale) int {
	return cmp.Or(cmp.Compare(o.Expires, s.Expires), cmp.Compare(o.Auction, s.Auction))
}

// lastTen averages the first ten.
func lastTen(all []sale) int64 {
	all = all[:min(10, len(all))]
	sum := int64(0)
	for _, s := range all {
		sum += s.Price
	}
	return sum / max(1, int64(len(all)))
}

// q7 finds the highest bids of each ten seconds: first of each auction, then of them all.
func q7(q query) {
	q.bids().GroupByKey().
		Windowed(streams.Tumbling(10*time.Second, streams.Grace(grace))).
		Aggregate(streams.Fold(
			func() High { return High{} },
			func(h High, b Bid) High { return h.better(High{b.Price, []Bid{b}}) },
		), streams.As("highest-of-auctions")).
		OnClose().
		Map(func(w streams.Window, _ int64, h High) (int64, High) { return w.Start.UnixMilli(), h }).
		GroupByKey(streams.As("by-window")).
		Reduce(High.better, q.as("highest")...).
		To(q.out)
}

// q8 finds people who opened an auction within the ten seconds in which they came. Who comes through a topic between may
// come much later than who does not, so windows stay open long.
func q8(q query) {
	people := q.persons().GroupByKey()
	opened := q.auctions().GroupBy(func(a Auction) int64 { return a.Seller }, streams.As("by-seller"))
	people.Cogroup(func(s Seller, p Person) Seller { return Seller{p.Name, s.Opened} }).
		With(opened, func(s Seller, _ Auction) Seller { return Seller{s.Name, s.Opened + 1} }).
		Windowed(streams.Tumbling(10*time.Second, streams.Grace(longGrace))).
		Aggregate(func() Seller { return Seller{} }, q.as("newcomers")...).
		Filter(Seller.complete).
		ToStream().
		To(q.out)
}

func (s Seller) complete() bool { return s.Name != "" && s.Opened > 0 }
