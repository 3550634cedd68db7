// Package memnet is a network in memory.
package memnet
