package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/listener"
	"github.com/millrace/millrace/broker/internal/metadata"
)

// ApiVersions: versions 0 to 5.
//
// It says which APIs and versions are served, and from version 3 on which
// features are finalized. It is the one API that answers a version it does not
// speak: in version 0, error UNSUPPORTED_VERSION, with its own row, so that the
// client asks again with a lower one (KIP-511).
//
//   - INVALID_REQUEST: the client's software name or version is not of the form
//     [a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])? (version 3 and above).
//   - REBOOTSTRAP_REQUIRED: version 5, the client expects another cluster or node.
func handleAPIVersions(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.ApiVersionsRequest)
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	if c.Version >= 3 && (!softwareName(req.ClientSoftwareName) || !softwareName(req.ClientSoftwareVersion)) {
		resp.ErrorCode = kerr.InvalidRequest.Code
		reply(resp)
		return
	}
	for i := range routes {
		r := &routes[i]
		key := kmsg.NewApiVersionsResponseApiKey()
		key.ApiKey, key.MinVersion, key.MaxVersion = r.key, r.min, r.max
		if r.key == keyProduce {
			key.MinVersion = produceAdvertisedMin
		}
		resp.ApiKeys = append(resp.ApiKeys, key)
	}
	if c.Version >= 3 {
		s.features(c.Version, resp)
	}
	reply(resp)
}

// features fills the supported and the finalized features. Version 3 hides a
// feature whose lowest level is 0, as Kafka does: old clients reject 0.
func (s *Server) features(version int16, resp *kmsg.ApiVersionsResponse) {
	im := s.Meta.Image()
	for _, f := range supportedFeatures {
		if f.min == 0 && version < 4 {
			continue
		}
		row := kmsg.NewApiVersionsResponseSupportedFeature()
		row.Name, row.MinVersion, row.MaxVersion = f.name, f.min, f.max
		resp.SupportedFeatures = append(resp.SupportedFeatures, row)
	}
	resp.FinalizedFeaturesEpoch = im.Offset
	for _, f := range supportedFeatures {
		level, ok := im.Features[f.name]
		if !ok || level == 0 {
			continue
		}
		row := kmsg.NewApiVersionsResponseFinalizedFeature()
		row.Name, row.MinVersionLevel, row.MaxVersionLevel = f.name, level, level
		resp.FinalizedFeatures = append(resp.FinalizedFeatures, row)
	}
}

// supportedFeatures lists what a cluster of this broker can finalize, by name.
// Clients use transactions of version 2 (KIP-890) only when transaction.version
// is finalized at 2.
var supportedFeatures = [...]struct {
	name     string
	min, max int16
}{
	{name: metadata.TransactionVersion, min: 0, max: 2},
}

// serveUnsupportedAPIVersions answers an ApiVersions request of a version that
// is not served. Kafka still reads the request's header and closes when it is
// short; the body is of an unknown form and not looked at.
func (s *Server) serveUnsupportedAPIVersions(c *Call, answer func(*listener.Answer)) {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.SetVersion(0)
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	own := routeOf(keyAPIVersions)
	key := kmsg.NewApiVersionsResponseApiKey()
	key.ApiKey, key.MinVersion, key.MaxVersion = own.key, own.min, own.max
	resp.ApiKeys = append(resp.ApiKeys, key)
	a := listener.NewAnswer()
	a.Buf = c.responseHeader(a.Buf, false)
	a.Buf = resp.AppendTo(a.Buf)
	answer(a)
}

// softwareName checks a client software name or version as KIP-511 defines it.
func softwareName(s string) bool {
	if s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		ch := s[i]
		switch {
		case ch >= 'a' && ch <= 'z', ch >= 'A' && ch <= 'Z', ch >= '0' && ch <= '9':
		case (ch == '-' || ch == '.') && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return true
}
