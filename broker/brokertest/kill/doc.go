// Package kill holds the tests that end a real server binary with SIGKILL under load, again and again, and then compare
// what the log holds with what was acknowledged.
package kill
