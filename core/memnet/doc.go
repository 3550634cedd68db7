// Package memnet is a network inside the process: Listen and Dial with the semantics of TCP, without a socket. It carries
// the embedded broker, and lets tests cut, delay and stall connections at will.
//
// A connection is two pipes. Unlike net.Pipe's they are buffered, as a kernel's socket buffers are: a write returns when its
// bytes are in the buffer, so request and answer can cross without a rendezvous of goroutines. A write to a reader who waits
// already goes straight into the reader's slice, which makes one copy in place of the two that buffers cost.
//
// Semantics are those of TCP as Go programs see them: bytes arrive in order or not at all; after Close the other side reads
// what was sent before and then io.EOF; its writes then fail with EPIPE; one's own calls fail with net.ErrClosed; a deadline
// fails a call with os.ErrDeadlineExceeded, also one that is under way; dialing where nobody listens is ECONNREFUSED.
//
// Addresses are "host:port" strings, any host; port 0 takes a free one. Two Networks never meet.
//
// Faults belong to a [Link], the connections from one dialer (by the name of its [Dialer]) to one address.
package memnet
