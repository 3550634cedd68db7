package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// levelFeature is what the cluster's level of the transaction protocol is called.
const levelFeature = "transaction.version"

// learn asks for the cluster's level, as clients do when they connect, and speaks that version from the next transaction on. What
// the producer has of an epoch it takes along. A producer that has nothing to learn goes on at once.
func (p *producer) learn(then func()) {
	if !p.learns {
		then()
		return
	}
	req := kmsg.NewPtrApiVersionsRequest()
	req.Version = 3
	req.ClientSoftwareName, req.ClientSoftwareVersion = "sim", "1"
	p.call(toCoordinator, req, 0, always, func(r kmsg.Response, err error) {
		if err != nil {
			p.after(p.soon(), "ask again", func() { p.learn(then) })
			return
		}
		level := int16(0)
		for _, f := range r.(*kmsg.ApiVersionsResponse).FinalizedFeatures {
			if f.Name == levelFeature {
				level = f.MaxVersionLevel
			}
		}
		switch v2 := level >= 2; {
		case v2 && !p.v2:
			p.w.see("a producer goes to version 2")
			p.v2 = true
		case p.v2 && !v2:
			p.w.see("a producer goes to version 1")
			p.v2 = false
		}
		p.w.log("%s: %s is %d", p.name, levelFeature, level)
		then()
	})
}

// level changes the cluster's level of the transaction protocol, up or down, beside the producers at work.
func (s *side) level() {
	to := int16(s.w.rng.IntN(3))
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.Version, req.TimeoutMillis = 1, 1000
	u := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
	u.Feature, u.MaxVersionLevel, u.UpgradeType = levelFeature, to, 1
	if to < s.now {
		u.UpgradeType = 2
	}
	req.FeatureUpdates = append(req.FeatureUpdates, u)
	s.call(toData, req, time.Second, always, func(r kmsg.Response, err error) {
		if err != nil {
			return
		}
		code := r.(*kmsg.UpdateFeaturesResponse).ErrorCode
		s.w.log("%s: %s to %d: %s", s.name, levelFeature, to, word(code))
		s.w.see("level " + word(code))
		if code == 0 {
			s.now = to
		}
	})
}
