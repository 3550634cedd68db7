package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/metadata"
)

// The ways to change a level that a request of version 1 or above can name. Version 0
// can only go up: Kafka 4.4 takes no notice of its flag for downgrades either.
const (
	upgradeFeature         = 1
	downgradeFeature       = 2
	unsafeDowngradeFeature = 3
)

// UpdateFeatures: versions 0 to 2 (KIP-584, KIP-778).
//
// All changes of a request are made, or none. The answer leaves when they are durable
// and published, so that ApiVersions shows them from then on, with a higher epoch.
// Clients that are connected go on as they do until they connect anew: each request is
// served by its own version, whatever the level is, and producers of both versions of
// the transaction protocol work side by side. A level that is asked for and is there
// already changes nothing.
//
//   - CLUSTER_AUTHORIZATION_FAILED: no ALTER on the cluster
//   - INVALID_UPDATE_VERSION: no such feature, level or way to change it; a level
//     below the present one as an upgrade, or above it as a downgrade
//
// Up to version 1 there is a row for each change of a request that succeeds.
func handleUpdateFeatures(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.UpdateFeaturesRequest)
	resp := req.ResponseKind().(*kmsg.UpdateFeaturesResponse)
	if !s.Authorize(c.Principal, kmsg.ACLOperationAlter, kmsg.ACLResourceTypeCluster, clusterResource) {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		resp.ErrorMessage = kmsg.StringPtr(kerr.ClusterAuthorizationFailed.Description)
		reply(resp)
		return
	}
	s.Meta.Change(func(im *metadata.Image) ([]metadata.Change, error) {
		var changes []metadata.Change
		for i := range req.FeatureUpdates {
			u := &req.FeatureUpdates[i]
			if problem := checkFeature(im, c.Version, u); problem != "" {
				resp.ErrorCode = kerr.InvalidUpdateVersion.Code
				resp.ErrorMessage = kmsg.StringPtr(fmt.Sprintf("No feature was changed: %s can not be set to level %d: %s.", u.Feature, u.MaxVersionLevel, problem))
				return nil, nil
			}
			if im.Features[u.Feature] != u.MaxVersionLevel {
				changes = append(changes, metadata.FeatureChange{Name: u.Feature, Level: u.MaxVersionLevel})
			}
		}
		if req.ValidateOnly && c.Version >= 1 {
			return nil, nil
		}
		return changes, nil
	}, func(_ *metadata.Image, err error) {
		if err != nil {
			resp.ErrorCode, resp.ErrorMessage = codeOf(err), kmsg.StringPtr(err.Error())
		}
		if resp.ErrorCode == 0 && c.Version <= 1 {
			for i := range req.FeatureUpdates {
				row := kmsg.NewUpdateFeaturesResponseResult()
				row.Feature = req.FeatureUpdates[i].Feature
				resp.Results = append(resp.Results, row)
			}
		}
		reply(resp)
	})
}

// checkFeature says what is wrong with one change, "" if nothing is.
func checkFeature(im *metadata.Image, version int16, u *kmsg.UpdateFeaturesRequestFeatureUpdate) string {
	kind := int8(upgradeFeature)
	if version >= 1 {
		kind = u.UpgradeType
	}
	now, level := im.Features[u.Feature], u.MaxVersionLevel
	if kind < upgradeFeature || kind > unsafeDowngradeFeature {
		return fmt.Sprintf("%d is no way to change a level", kind)
	}
	for _, f := range supportedFeatures {
		if f.name != u.Feature {
			continue
		}
		switch {
		case level < f.min || level > f.max:
			return fmt.Sprintf("the levels are %d to %d", f.min, f.max)
		case level < now && kind == upgradeFeature:
			return fmt.Sprintf("it is at %d, and this is no downgrade", now)
		case level > now && kind != upgradeFeature:
			return fmt.Sprintf("it is at %d, and this is a downgrade", now)
		}
		return ""
	}
	return "there is no such feature"
}
