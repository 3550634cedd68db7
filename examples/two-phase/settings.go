package main

// settings are the flags.
type settings struct {
	postgres, brokers, decides string
	payments                   int
	check                      bool
	pauseAt                    string // for the test: stop at this step of the payment pauseOf
	pauseOf                    int
}
