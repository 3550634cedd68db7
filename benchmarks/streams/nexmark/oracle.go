package nexmark

import (
	"slices"
	"strconv"
)

// answer is what a query has to give: the last value by key, in a form that can be compared.
type answer map[string]string

func (a answer) put(key int64, v any) { a[strconv.FormatInt(key, 10)] = canonical(v) }

// stateless gives the results of the queries 0 to 2, one bid after the other.
func stateless(query string, b Bid) (result any, ok bool) {
	switch query {
	case "q0":
		return b, true
	case "q1":
		return inEuros(b), true
	}
	return Price{b.Auction, b.Price}, picked(b)
}

// facts are the events as an oracle wants them.
type facts struct {
	persons  []*Person
	auctions []*Auction
	bids     []*Bid
}

// factsOf makes the first n events and their ends.
func (c Config) factsOf(n int64, partitions int32) facts {
	var f facts
	for i := range n {
		switch e := c.At(i); {
		case e.Person != nil:
			f.persons = append(f.persons, e.Person)
		case e.Auction != nil:
			f.auctions = append(f.auctions, e.Auction)
		default:
			f.bids = append(f.bids, e.Bid)
		}
	}
	f.bids = append(f.bids, c.Ends(n, partitions)...)
	return f
}

// answer computes what a query with state has to give, without a stream in sight.
func (f facts) answer(query string) answer {
	switch query {
	case "q3":
		return f.offers()
	case "q4":
		return f.categoryMeans()
	case "q5":
		return f.hottest()
	case "q6":
		return f.sellerMeans()
	case "q7":
		return f.highest()
	}
	return f.newcomers()
}

func (f facts) offers() answer {
	people := map[int64]*Person{}
	for _, p := range f.persons {
		people[p.ID] = p
	}
	out := answer{}
	for _, a := range f.auctions {
		if p := people[a.Seller]; p != nil && a.Category == 10 && slices.Contains([]string{"OR", "ID", "CA"}, p.State) {
			out.put(a.ID, Offer{p.Name, p.City, p.State, a.ID})
		}
	}
	return out
}

// best is the highest valid bid of each auction.
func (f facts) best() map[*Auction]int64 {
	auctions := map[int64]*Auction{}
	for _, a := range f.auctions {
		auctions[a.ID] = a
	}
	best := map[*Auction]int64{}
	for _, b := range f.bids {
		if a := auctions[b.Auction]; a != nil && b.DateTime > a.DateTime && b.DateTime <= a.Expires {
			best[a] = max(best[a], b.Price)
		}
	}
	return best
}

func (f facts) categoryMeans() answer {
	sum, n := map[int64]int64{}, map[int64]int64{}
	for a, price := range f.best() {
		sum[a.Category] += price
		n[a.Category]++
	}
	out := answer{}
	for category := range sum {
		out.put(category, sum[category]/n[category])
	}
	return out
}

func (f facts) sellerMeans() answer {
	best := f.best()
	of := map[int64][]*Auction{}
	for a := range best {
		of[a.Seller] = append(of[a.Seller], a)
	}
	out := answer{}
	for seller, all := range of {
		slices.SortFunc(all, func(a, b *Auction) int {
			if a.Expires != b.Expires {
				return int(b.Expires - a.Expires)
			}
			return int(b.ID - a.ID)
		})
		sum, n := int64(0), int64(0)
		for _, a := range all {
			if n < 10 {
				sum += best[a]
				n++
			}
		}
		out.put(seller, sum/n)
	}
	return out
}

// closed are the bids whose windows close: all but those at the end.
func (f facts) closed() []*Bid {
	return slices.DeleteFunc(slices.Clone(f.bids), func(b *Bid) bool { return b.Auction < 0 })
}

func (f facts) hottest() answer {
	counts := map[int64]map[int64]int64{} // by window and auction
	for _, b := range f.closed() {
		for start := b.DateTime / 2000 * 2000; start > b.DateTime-10_000; start -= 2000 {
			if counts[start] == nil {
				counts[start] = map[int64]int64{}
			}
			counts[start][b.Auction]++
		}
	}
	out := answer{}
	for start, of := range counts {
		h := Hot{Auctions: []int64{}}
		for auction, n := range of {
			if n > h.Bids {
				h = Hot{n, []int64{}}
			}
			if n == h.Bids {
				h.Auctions = append(h.Auctions, auction)
			}
		}
		slices.Sort(h.Auctions)
		out.put(start, h)
	}
	return out
}

func (f facts) highest() answer {
	top := map[int64]*High{}
	for _, b := range f.closed() {
		start := b.DateTime / 10_000 * 10_000
		h := top[start]
		if h == nil {
			h = &High{}
			top[start] = h
		}
		if b.Price > h.Price {
			*h = High{Price: b.Price}
		}
		if b.Price == h.Price {
			h.Bids = append(h.Bids, *b)
		}
	}
	out := answer{}
	for start, h := range top {
		slices.SortFunc(h.Bids, Bid.compare)
		out.put(start, *h)
	}
	return out
}

func (f facts) newcomers() answer {
	type place struct{ person, start int64 }
	opened := map[place]int64{}
	for _, a := range f.auctions {
		opened[place{a.Seller, a.DateTime / 10_000}]++
	}
	out := answer{}
	for _, p := range f.persons {
		if n := opened[place{p.ID, p.DateTime / 10_000}]; n > 0 {
			out[windowKey(p.ID, p.DateTime/10_000*10_000)] = canonical(Seller{p.Name, n})
		}
	}
	return out
}

func windowKey(id, start int64) string {
	return strconv.FormatInt(id, 10) + "@" + strconv.FormatInt(start, 10)
}
