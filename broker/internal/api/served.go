package api

import "github.com/twmb/franz-go/pkg/kmsg"

// Served tells how many requests of each API came in since the start, by the API's name. Requests of unknown APIs or versions, at
// which the connection ends, do not count.
func (s *Server) Served(each func(name string, n int64)) {
	for i := range routes {
		key := routes[i].key
		each(kmsg.NameForKey(key), s.served[key].Load())
	}
}
