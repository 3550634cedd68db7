// Package listener owns connections: frames in, answers out.
//
// Each connection has two goroutines. The reader takes one frame at a time off
// the socket and hands it to the Service, which answers at once or parks. The
// writer sends answers in request order, all that are ready in one gathered
// write, and file sections by sendfile where the connection is TCP.
//
// Back-pressure: a connection has at most so many requests and so many request
// bytes under way; past that the reader stops reading, and TCP tells the client.
// An answer that nobody reads stops the writer, then the reader, and nobody else.
//
// A frame that is not one (negative or zero length, more than the limit), and a
// request that the service refuses with an error, close the connection; what was
// asked before is still answered as far as it is ready. Nothing a peer sends can
// panic the broker or make it reserve more memory than the bytes that came in.
package listener
