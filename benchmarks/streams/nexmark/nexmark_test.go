package nexmark

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

var topics = Topics{"persons", "auctions", "bids"}

// run sends events through a query under virtual time, all that one topic has after another when split, and gives what
// it has written.
func run(t testing.TB, query string, c Config, n int64, cached int, crashes bool) []streamstest.Raw {
	t.Helper()
	const partitions = 2
	app, err := Query(query, "test", topics, "out", cached, func() {})
	if err != nil {
		t.Fatal(err)
	}
	d := streamstest.New(t, app, streamstest.Partitions(partitions))
	at := time.UnixMilli
	reads := map[string]bool{}
	for _, topic := range topics.Reads(query) {
		reads[topic] = true
	}
	persons, auctions, bids := d.In[int64, Person](topics.Persons), d.In[int64, Auction](topics.Auctions), d.In[int64, Bid](topics.Bids)
	for i := range n {
		switch e := c.At(i); {
		case e.Person != nil && reads[topics.Persons]:
			persons.At(at(e.Person.DateTime), e.Person.ID, *e.Person)
		case e.Auction != nil && reads[topics.Auctions]:
			auctions.At(at(e.Auction.DateTime), e.Auction.ID, *e.Auction)
		case e.Bid != nil && reads[topics.Bids]:
			bids.At(at(e.Bid.DateTime), e.Bid.Auction, *e.Bid)
		}
		if crashes && i == n/2 {
			d.Crash()
		}
	}
	if reads[topics.Bids] {
		for _, b := range c.Ends(n, partitions) {
			bids.At(at(b.DateTime), b.Auction, *b)
		}
	}
	var out []streamstest.Raw
	for _, r := range d.Written() {
		if r.Topic == "out" {
			out = append(out, r)
		}
	}
	return out
}

func check(query string, c Config, n int64, records []streamstest.Raw) error {
	k := c.NewCheck(query, n, 2)
	for _, r := range records {
		if err := k.Take(r.Key, r.Value); err != nil {
			return err
		}
	}
	return k.Done()
}

// TestQueries: every query gives what the oracle says, with and without a cache and over a crash, and a result that is
// missing is seen.
func TestQueries(t *testing.T) {
	t.Parallel()
	for _, query := range Names {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			c, n := Config{Seed: 7, Rate: 30}, int64(900) // thirty seconds
			if query == "q2" {
				n = 2100 // until one of its auctions is there
			}
			out := run(t, query, c, n, 0, true)
			if err := check(query, c, n, out); err != nil {
				t.Error(err)
			}
			if len(out) == 0 {
				t.Fatal("the query has no results: the events are too few")
			}
			last := out[len(out)-1]
			if check(query, c, n, slices.DeleteFunc(slices.Clone(out), func(r streamstest.Raw) bool {
				return bytes.Equal(r.Key, last.Key) && bytes.Equal(r.Value, last.Value)
			})) == nil {
				t.Error("nobody misses a result")
			}
			if err := check(query, c, n, run(t, query, c, n, 1000, false)); err != nil {
				t.Errorf("with a cache: %v", err)
			}
		})
	}
	if _, err := Query("q99", "id", topics, "out", 0, func() {}); err == nil {
		t.Error("any name is a query")
	}
}

// TestGenerator: shares, ids, order and sizes of events, and that they depend on nothing but seed and number.
func TestGenerator(t *testing.T) {
	t.Parallel()
	c := Config{Seed: 1, Rate: 1000}
	const n = 10_000
	f := c.factsOf(n, 4)
	if len(f.persons) != n/50 || len(f.auctions) != n*3/50 || len(f.bids) != n*46/50+4 {
		t.Errorf("%d persons, %d auctions, %d bids", len(f.persons), len(f.auctions), len(f.bids))
	}
	for i, p := range f.persons {
		if p.ID != int64(1000+i) {
			t.Fatalf("person %d has id %d", i, p.ID)
		}
	}
	for i, a := range f.auctions {
		if a.ID != int64(1000+i) || a.Expires <= a.DateTime || a.Category < 10 || a.Category > 14 || a.Reserve <= a.InitialBid || a.Seller < 1000 {
			t.Fatalf("auction %d: %+v", i, a)
		}
	}
	hot, size := map[int64]int{}, 0
	for _, b := range f.bids[:len(f.bids)-4] {
		if b.Price < 100 || b.Price > 100_000_000 {
			t.Fatalf("a price of %d", b.Price)
		}
		hot[b.Auction]++
		size += 32 + len(b.Channel) + len(b.URL) + len(b.Extra)
	}
	if mean := size / len(f.bids); mean < 80 || mean > 130 {
		t.Errorf("a bid has %d bytes", mean)
	}
	if hot[1000] < 400 { // half of the bids of the first hundred auctions
		t.Errorf("the first hot auction has %d bids", hot[1000])
	}
	if a, b := canonical(c.At(77)), canonical(Config{Seed: 1, Rate: 1000}.At(77)); a != b {
		t.Errorf("event 77 is %s and %s", a, b)
	}
	if canonical(c.At(77)) == canonical(Config{Seed: 2, Rate: 1000}.At(77)) {
		t.Error("the seed changes nothing")
	}
}

// TestEveryCrash: the queries with most state survive a crash at each step.
func TestEveryCrash(t *testing.T) {
	t.Parallel()
	c := Config{Seed: 3, Rate: 10}
	for _, query := range []string{"q4", "q5"} {
		streamstest.EveryCrash(t, func() *streams.App {
			app, err := Query(query, "test", topics, "out", 0, func() {})
			if err != nil {
				t.Fatal(err)
			}
			return app
		}, func(d *streamstest.Driver) {
			for i := range int64(14) {
				switch e := c.At(i); {
				case e.Auction != nil && query == "q4":
					d.In[int64, Auction](topics.Auctions).At(time.UnixMilli(e.Auction.DateTime), e.Auction.ID, *e.Auction)
				case e.Bid != nil:
					d.In[int64, Bid](topics.Bids).At(time.UnixMilli(e.Bid.DateTime), e.Bid.Auction, *e.Bid)
				}
			}
		})
	}
}
