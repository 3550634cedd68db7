package api

import "github.com/twmb/franz-go/pkg/kerr"

// openSession checks the session that the request names (KIP-227). This broker
// offers none: a full fetch is answered with session id 0, which tells the client
// to go on with full fetches.
func (f *fetch) openSession() int16 {
	if f.epoch > 0 {
		return kerr.FetchSessionIDNotFound.Code
	}
	return 0
}
