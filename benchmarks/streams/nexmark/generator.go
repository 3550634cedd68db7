package nexmark

import (
	"math/bits"
	"strconv"
)

// The constants of the generator's lineage.
const (
	epoch         = 50 // events, of which 1 person, 3 auctions, 46 bids
	persons       = 1
	auctions      = 3
	firstID       = 1000 // of persons and of auctions
	firstCategory = 10
	categories    = 5
	activePeople  = 1000
	inFlight      = 100 // auctions
	lead          = 10  // ids that may be referred to before they are there
	hotSellers    = 4   // all but one in so many are of the hot seller
	hotAuctions   = 2
	hotBidders    = 4
	hotChannels   = 2
	hotEach       = 100 // a hot id is a multiple of that
)

// Config says what events are made. Two generators with the same one make the same.
type Config struct {
	Seed uint64
	Rate int64 // events in a second of their own time
}

// BaseMs is the time of the first event.
const BaseMs = 1_700_000_000_000

// Event is one of Person, Auction and Bid; the others are nil.
type Event struct {
	Person  *Person
	Auction *Auction
	Bid     *Bid
}

// TimeMs is when event n happens.
func (c Config) TimeMs(n int64) int64 { return BaseMs + n*1000/c.Rate }

// At makes event n.
func (c Config) At(n int64) Event {
	r := &rng{c.Seed ^ mix(uint64(n))}
	switch rem := n % epoch; {
	case rem < persons:
		return Event{Person: c.person(n, r)}
	case rem < persons+auctions:
		return Event{Auction: c.auction(n, r)}
	}
	return Event{Bid: c.bid(n, r)}
}

// lastPerson and lastAuction are the ids, counted from 0, that are there when event n is made.
func lastPerson(n int64) int64 { return n / epoch }

func lastAuction(n int64) int64 {
	switch rem := n % epoch; {
	case rem < persons:
		return auctions*(n/epoch) - 1
	case rem >= persons+auctions:
		return auctions*(n/epoch) + auctions - 1
	default:
		return auctions*(n/epoch) + rem - persons
	}
}

func (c Config) person(n int64, r *rng) *Person {
	first, last := pick(r, firstNames), pick(r, lastNames)
	p := &Person{ID: lastPerson(n) + firstID, Name: first + " " + last, EmailAddress: r.text(7) + "@" + r.text(5) + ".com",
		City: pick(r, cities), State: pick(r, states), DateTime: c.TimeMs(n)}
	for i := range 4 {
		if i > 0 {
			p.CreditCard += " "
		}
		p.CreditCard += strconv.FormatInt(1000+r.below(9000), 10)
	}
	p.Extra = r.pad(len(p.Name)+len(p.EmailAddress)+len(p.CreditCard)+len(p.City)+len(p.State)+16, 200)
	return p
}

func (c Config) auction(n int64, r *rng) *Auction {
	a := &Auction{ID: lastAuction(n) + firstID, ItemName: r.text(20), Description: r.text(100), InitialBid: r.price(), DateTime: c.TimeMs(n),
		Category: firstCategory + r.below(categories)}
	a.Reserve = a.InitialBid + r.price()
	horizon := c.TimeMs(n+inFlight*epoch/auctions) - a.DateTime // until so many more auctions are there
	a.Expires = a.DateTime + 1 + r.below(max(1, 2*horizon))
	if r.below(hotSellers) > 0 {
		a.Seller = firstID + lastPerson(n)/hotEach*hotEach
	} else {
		a.Seller = firstID + activePerson(n, r)
	}
	a.Extra = r.pad(len(a.ItemName)+len(a.Description)+56, 500)
	return a
}

func (c Config) bid(n int64, r *rng) *Bid {
	b := &Bid{Price: r.price(), DateTime: c.TimeMs(n)}
	if r.below(hotAuctions) > 0 {
		b.Auction = firstID + lastAuction(n)/hotEach*hotEach
	} else {
		low := max(lastAuction(n)-inFlight, 0)
		b.Auction = firstID + low + r.below(lastAuction(n)-low+1+lead)
	}
	if r.below(hotBidders) > 0 {
		b.Bidder = firstID + lastPerson(n)/hotEach*hotEach + 1
	} else {
		b.Bidder = firstID + activePerson(n, r)
	}
	if r.below(hotChannels) > 0 {
		i := r.below(int64(len(channels)))
		b.Channel, b.URL = channels[i], address(&rng{mix(uint64(i) + 1)})
	} else {
		i := r.below(10_000)
		b.Channel, b.URL = "channel-"+strconv.FormatInt(i, 10), address(&rng{mix(uint64(i) + 1000)})
		if i%10 > 0 {
			b.URL += "&channel_id=" + strconv.FormatUint(uint64(bits.Reverse32(uint32(i))), 10)
		}
	}
	b.Extra = r.pad(32+len(b.Channel)+len(b.URL), 100)
	return b
}

// activePerson is one of the last people, or one who comes soon.
func activePerson(n int64, r *rng) int64 {
	people := lastPerson(n) + 1
	active := min(people, activePeople)
	return people - active + r.below(active+lead)
}

func address(r *rng) string {
	return "https://www.nexmark.com/" + r.word(5) + "/" + r.word(5) + "/" + r.word(5) + "/item.htm?query=1"
}

var (
	firstNames = []string{"Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"}
	lastNames  = []string{"Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"}
	cities     = []string{"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"}
	states     = []string{"AZ", "CA", "ID", "OR", "WA", "WY"}
	channels   = []string{"Google", "Facebook", "Baidu", "Apple"}
)
