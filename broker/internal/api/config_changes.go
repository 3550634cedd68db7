package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/metadata"
)

// resourceChange is what AlterConfigs and IncrementalAlterConfigs ask for one resource.
type resourceChange struct {
	kind kmsg.ConfigResourceType
	name string
	// alterations of single settings; with replace they are all that is to be set.
	alterations []metadata.Alteration
	replace     bool
	nulls       []string // settings to be set to null

	err     error
	changes []metadata.Change
}

// alterResources decides about each resource on its own and makes what is fine in one step. done is called when that is durable and
// in effect, with the outcome of each resource in its err.
func (s *Server) alterResources(c *Call, resources []*resourceChange, validateOnly bool, done func()) {
	s.Meta.Change(func(im *metadata.Image) (all []metadata.Change, err error) {
		for _, r := range resources {
			if r.err = r.wellFormed(resources); r.err != nil {
				continue
			}
			if r.changes, r.err = s.plan(c, im, r); r.err == nil && !validateOnly {
				all = append(all, r.changes...)
			}
		}
		if len(all) == 0 {
			return nil, nil
		}
		epochs, err := im.Stricter(all, s.Config.Static)
		return append(all, epochs...), err
	}, func(_ *metadata.Image, err error) {
		for _, r := range resources {
			if r.err == nil && err != nil {
				r.err = err
			}
		}
		if validateOnly {
			done()
			return
		}
		s.afterAlteration(resources, done)
	})
}

// wellFormed applies the rules that need no image, in Kafka's order.
func (r *resourceChange) wellFormed(all []*resourceChange) error {
	for _, other := range all {
		if other != r && other.kind == r.kind && other.name == r.name {
			return &refusal{kerr.InvalidRequest.Code, "Each resource must appear at most once."}
		}
	}
	seen := map[string]bool{}
	for _, a := range r.alterations {
		if seen[a.Name] {
			return &refusal{kerr.InvalidRequest.Code, "Error due to duplicate config keys"}
		}
		seen[a.Name] = true
	}
	if len(r.nulls) > 0 {
		return &refusal{kerr.InvalidRequest.Code, "Null value not supported for : " + strings.Join(r.nulls, ", ")}
	}
	for _, a := range r.alterations {
		if a.Op < metadata.OpSet || a.Op > metadata.OpSubtract {
			return &refusal{kerr.InvalidRequest.Code, fmt.Sprintf("Unknown %s for configuration %s", a.Op, a.Name)}
		}
	}
	return nil
}

// plan lists the changes for one resource.
func (s *Server) plan(c *Call, im *metadata.Image, r *resourceChange) ([]metadata.Change, error) {
	switch r.kind {
	case kmsg.ConfigResourceTypeTopic:
		return s.planTopicConfig(c, im, r)
	case kmsg.ConfigResourceTypeBroker:
		return s.planBrokerConfig(c, im, r)
	}
	return nil, &refusal{kerr.InvalidRequest.Code, fmt.Sprintf("Unknown resource type %d", r.kind)}
}

func (s *Server) planTopicConfig(c *Call, im *metadata.Image, r *resourceChange) (changes []metadata.Change, err error) {
	if !s.Authorize(c.Principal, kmsg.ACLOperationAlterConfigs, kmsg.ACLResourceTypeTopic, r.name) {
		return nil, kerr.TopicAuthorizationFailed
	}
	if err := metadata.ValidateName(r.name); err != nil {
		return nil, &refusal{kerr.InvalidTopicException.Code, err.Error()}
	}
	t := im.Topic(r.name)
	if t == nil {
		return nil, &refusal{kerr.UnknownTopicOrPartition.Code, fmt.Sprintf("The topic '%s' does not exist.", r.name)}
	}
	if r.replace {
		changes, err = im.SetTopic(t, r.values())
	} else {
		changes, err = im.AlterTopic(t, r.alterations)
	}
	switch {
	case errors.Is(err, metadata.ErrInternalTopic):
		return nil, &refusal{kerr.PolicyViolation.Code, err.Error()}
	case err != nil:
		return nil, &refusal{kerr.InvalidConfig.Code, err.Error()}
	}
	return changes, nil
}

func (s *Server) planBrokerConfig(c *Call, im *metadata.Image, r *resourceChange) (changes []metadata.Change, err error) {
	if !s.Authorize(c.Principal, kmsg.ACLOperationAlterConfigs, kmsg.ACLResourceTypeCluster, clusterResource) {
		return nil, kerr.ClusterAuthorizationFailed
	}
	if r.name != metadata.AllBrokers {
		id, err := strconv.ParseInt(r.name, 10, 32)
		switch {
		case err != nil:
			return nil, &refusal{kerr.InvalidRequest.Code, "Node id must be an integer, but it is: " + r.name}
		case int32(id) != s.Config.NodeID:
			return nil, &refusal{kerr.InvalidRequest.Code, fmt.Sprintf("Unexpected broker id, expected %d, but received %s", s.Config.NodeID, r.name)}
		}
	}
	if r.replace {
		changes, err = im.SetBroker(r.name, r.values())
	} else {
		changes, err = im.AlterBroker(r.name, r.alterations, s.Config.Static)
	}
	if err != nil {
		return nil, &refusal{kerr.InvalidRequest.Code, err.Error()}
	}
	return changes, nil
}

func (r *resourceChange) values() map[string]string {
	out := make(map[string]string, len(r.alterations))
	for _, a := range r.alterations {
		out[a.Name] = a.Value
	}
	return out
}

// outcome is what the answer says of the resource.
func (r *resourceChange) outcome() (code int16, message *string) {
	if r.err == nil {
		return 0, nil
	}
	return codeOf(r.err), kmsg.StringPtr(r.err.Error())
}

// afterAlteration waits, where a durability was changed, until what had been acknowledged before is synced: from the answer on the new
// one holds for all records.
func (s *Server) afterAlteration(resources []*resourceChange, done func()) {
	var waiting atomic.Int64
	waiting.Store(1)
	finish := func() {
		if waiting.Add(-1) == 0 {
			done()
		}
	}
	for _, r := range resources {
		if r.err != nil {
			continue
		}
		for _, topic := range s.moreDurable(r) {
			t := s.Replicas.Topic([]byte(topic))
			for i := int32(0); t != nil && i < t.Len(); i++ {
				p, err := t.Partition(i)
				if err != nil {
					continue // offline: it acknowledges nothing
				}
				if end := p.Marks().LogEnd; end > 0 {
					waiting.Add(1)
					p.AwaitDurable(end-1, func(error) { finish() }) // one that fails is offline now, and says so to its clients
				}
			}
		}
	}
	finish()
}

// moreDurable names the topics whose acknowledgements may wait for more than before.
func (s *Server) moreDurable(r *resourceChange) []string {
	for _, c := range r.changes {
		switch c := c.(type) {
		case metadata.ConfigChange:
			if durabilityKey(metadata.TopicConfig(c.Name)) {
				return []string{c.Topic}
			}
		case metadata.BrokerConfigChange:
			if durabilityKey(metadata.BrokerConfig(c.Name)) {
				return s.Meta.Image().Names()
			}
		}
	}
	return nil
}

// durabilityKey tells whether a setting has a say in what an acknowledgement waits for; k is nil for one that an earlier version knew.
func durabilityKey(k *metadata.ConfigKey) bool {
	return k != nil && (k.Name == metadata.Durability || k.Name == metadata.FlushMs || k.Name == metadata.FlushMessages)
}
