// Package clock hands time to code as an argument. Code that asks the time or wants to be called later takes a [Clock]; in
// production that is [System], in tests a [Manual], whose time stands still until the test moves it, so that nothing has
// to sleep and the order of timers is the same in every run.
package clock

import "time"

// Clock tells the time and calls back later. All methods are safe for concurrent use.
type Clock interface {
	// Now is the current time.
	Now() time.Time
	// AfterFunc calls f once when d has passed, on a goroutine of the clock's choosing, unless the timer is stopped
	// before. With d of zero or less that is as soon as possible, never within the call itself.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call that is due later.
type Timer interface {
	// Stop prevents the call. It tells whether it did: false means that the call has begun or was stopped before.
	Stop() bool
}

// System is the machine's clock.
func System() Clock { return system{} }

type system struct{}

func (system) Now() time.Time { return time.Now() }

func (system) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
