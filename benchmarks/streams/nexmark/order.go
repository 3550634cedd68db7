package nexmark

import (
	"cmp"
	"slices"
)

// compare orders bids of the same price.
func (b Bid) compare(o Bid) int {
	return cmp.Or(cmp.Compare(b.DateTime, o.DateTime), cmp.Compare(b.Auction, o.Auction), cmp.Compare(b.Bidder, o.Bidder), cmp.Compare(b.Extra, o.Extra))
}

// merged is one sorted list of two.
func merged[T any](a, b []T, by func(T, T) int) []T {
	all := slices.Concat(a, b)
	slices.SortFunc(all, by)
	return all
}

// better gives the hotter of two, or both when they have as many bids.
func (h Hot) better(o Hot) Hot {
	switch {
	case h.Bids > o.Bids:
		return h
	case h.Bids < o.Bids:
		return o
	}
	return Hot{h.Bids, merged(h.Auctions, o.Auctions, cmp.Compare[int64])}
}

// better gives the higher of two, or both when they are as high.
func (h High) better(o High) High {
	switch {
	case h.Price > o.Price:
		return h
	case h.Price < o.Price:
		return o
	}
	return High{h.Price, merged(h.Bids, o.Bids, Bid.compare)}
}
