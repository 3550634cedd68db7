// Package nexmark is the auction benchmark of the stream processing field (Tucker et al., 2008; the variant of Apache Beam
// and of nexmark-flink): a generator of persons, auctions and bids, the queries 0 to 8 as jobs of package streams, and an
// oracle that answers the same queries from the same events in plain Go.
//
// The generator is a pure function of a seed and the event's number, so results can be computed instead of recorded. Two
// things are chosen otherwise than in nexmark-flink, for all sides alike: a bidder's id has the offset of the first person
// once and not twice, and a bid in the very millisecond in which its auction opens does not count, so that no result
// depends on which of two records of the same time is read first.
//
// A query's result is the last value of each of its keys; for the queries 0 to 2, all records. That is what an engine that
// sends updates and one that sends final results have in common.
package nexmark

// Person joins the auction house, as a seller or bidder.
type Person struct {
	ID           int64  `json:"id"`
	Name         string `json:"name"`
	EmailAddress string `json:"emailAddress"`
	CreditCard   string `json:"creditCard"`
	City         string `json:"city"`
	State        string `json:"state"`
	DateTime     int64  `json:"dateTime"` // milliseconds since 1970, here and below
	Extra        string `json:"extra"`
}

// Auction is an item for sale until it expires.
type Auction struct {
	ID          int64  `json:"id"`
	ItemName    string `json:"itemName"`
	Description string `json:"description"`
	InitialBid  int64  `json:"initialBid"`
	Reserve     int64  `json:"reserve"`
	DateTime    int64  `json:"dateTime"`
	Expires     int64  `json:"expires"`
	Seller      int64  `json:"seller"`
	Category    int64  `json:"category"`
	Extra       string `json:"extra"`
}

// Bid is an offer for an item, in cents.
type Bid struct {
	Auction  int64  `json:"auction"`
	Bidder   int64  `json:"bidder"`
	Price    int64  `json:"price"`
	Channel  string `json:"channel"`
	URL      string `json:"url"`
	DateTime int64  `json:"dateTime"`
	Extra    string `json:"extra"`
}

// Results of the queries.
type (
	// Price is a result of query 2.
	Price struct {
		Auction int64 `json:"auction"`
		Price   int64 `json:"price"`
	}
	// Offer is a result of query 3.
	Offer struct {
		Name    string `json:"name"`
		City    string `json:"city"`
		State   string `json:"state"`
		Auction int64  `json:"auction"`
	}
	// Hot is a result of query 5: the auctions with the most bids, in order.
	Hot struct {
		Bids     int64   `json:"bids"`
		Auctions []int64 `json:"auctions"`
	}
	// High is a result of query 7: the bids of the highest price, in order.
	High struct {
		Price int64 `json:"price"`
		Bids  []Bid `json:"bids"`
	}
	// Seller is a result of query 8: somebody new, and how many auctions were opened at once.
	Seller struct {
		Name   string `json:"name"`
		Opened int64  `json:"opened"`
	}
)
