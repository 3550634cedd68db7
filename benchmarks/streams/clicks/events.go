// Package clicks is the work of the stream jobs that are compared: a topic of click events, what the jobs do with it, and
// what has to come out.
//
// An event is a function of its number, so nobody has to keep the events to know the results. All of them are about
// 110 bytes long, come every 10 ms of their own time, and are spread over their users by a linear congruential generator:
// every implementation that takes part produces, reads and counts exactly the same.
package clicks

import "strconv"

// Users is how many keys there are.
const Users = 10_000

// firstMs is the time of the first event, and stepMs how far apart they are.
const (
	firstMs = 1_700_000_000_000
	stepMs  = 10
)

// Event is one click. The slices are good until the next one.
type Event struct {
	User   int
	TimeMs int64
	Key    []byte
	Value  []byte
}

// Events makes the events in order. The zero value is not ready; see NewEvents.
type Events struct {
	x     uint32
	n     int64
	event Event
}

// NewEvents starts with the first event.
func NewEvents() *Events { return &Events{x: 42} }

// Next is the next event.
func (e *Events) Next() *Event {
	e.Random()
	v := &e.event
	v.User = int(e.x >> 8 % Users)
	v.TimeMs = firstMs + stepMs*e.n
	e.n++
	v.Key = AppendUser(v.Key[:0], v.User)
	b := append(v.Value[:0], `{"user":"`...)
	b = append(b, v.Key...)
	b = append(b, `","url":"/shop/item/`...)
	b = strconv.AppendUint(b, uint64(e.x%1000), 10)
	b = append(b, `","ms":`...)
	b = strconv.AppendInt(b, v.TimeMs, 10)
	b = append(b, `,"referrer":"https://example.org/search?q=`...)
	b = strconv.AppendUint(b, uint64(e.x%97), 10)
	b = append(b, `","cents":`...)
	b = strconv.AppendUint(b, uint64(e.x%9999), 10)
	v.Value = append(b, '}')
	return v
}

// Random is the next number that an event would be made of.
func (e *Events) Random() uint32 {
	e.x = e.x*1664525 + 1013904223
	return e.x
}

// AppendUser appends the key of a user.
func AppendUser(b []byte, user int) []byte {
	return strconv.AppendInt(append(b, "user-"...), int64(user), 10)
}
