package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/listener"
)

// route says how one API is served. An API is in the table or it is neither
// served nor advertised.
type route struct {
	key, min, max int16
	handle        Handler
	// request makes an empty request; nil means kmsg's.
	request func() kmsg.Request
	// raw serves the two APIs that move record bytes, Produce and Fetch, on
	// hand-written codecs. The other fields are as for handle.
	raw func(s *Server, c *Call, body []byte, answer func(*listener.Answer)) error
}

const (
	keyProduce     = 0
	keyFetch       = 1
	keyAPIVersions = 18
)

// produceAdvertisedMin is the lowest version of Produce in the answer of
// ApiVersions. Versions 0 to 2 are refused all the same: librdkafka turns
// compression off when it does not see them (KAFKA-18659).
const produceAdvertisedMin = 0

// routes is the table of all served APIs, one line each, by key. It is the only
// place where versions are written down.
var routes []route

// byKey is routes by API key, for a lookup without a search.
var byKey [apiKeys]*route

// newRequest makes an empty request to decode into.
func (r *route) newRequest() kmsg.Request {
	if r.request != nil {
		return r.request()
	}
	return kmsg.RequestForKey(r.key)
}

func routeOf(key int16) *route {
	if key < 0 || int(key) >= len(byKey) {
		return nil
	}
	return byKey[key]
}

// flexible holds the first version with a flexible request header, by key, -1
// for none.
var flexible = func() (t [apiKeys]int16) {
	for key := range t {
		t[key] = -1
		req := kmsg.RequestForKey(int16(key))
		if req == nil {
			continue
		}
		for v := int16(0); v <= req.MaxVersion(); v++ {
			if req.SetVersion(v); req.IsFlexible() {
				t[key] = v
				break
			}
		}
	}
	return t
}()

// flexibleHeader says whether requests of this version have a header with tags.
func flexibleHeader(key, version int16) bool {
	if key < 0 || int(key) >= len(flexible) {
		return false
	}
	return flexible[key] >= 0 && version >= flexible[key]
}
