// Package brokertest starts real brokers in tests.
//
//	b := brokertest.Start(t)
//
// is a broker in memory that lives as long as the test. There is no fake in this
// package: it is the production broker, on a file system, a clock and limits that
// the test chooses.
//
// A Node is a broker that a test can also restart, crash and starve: Crash takes
// its power away, which leaves on the disk what was synced and a seeded share of
// the rest, and FailDisk makes file operations fail by name.
package brokertest
