package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/metadata"
)

// IncrementalAlterConfigs: versions 0 and 1.
//
// Each resource is decided on its own; what is fine is changed in one step, stored in the metadata log, and in effect on the running
// partitions when the answer leaves. ValidateOnly decides without changing. Topics have the settings of the table in metadata; a
// broker, or all brokers (an empty name), those that topics take over where they do not say themselves.
//
//   - INVALID_REQUEST: a resource or a setting twice, null for a value, an unknown operation, another broker, a resource without
//     settings, a setting of a broker that can not be changed while it runs, or a value that does not fit one
//   - INVALID_CONFIG: an unknown setting of a topic, a value that does not fit, APPEND or SUBTRACT for what is no list
//   - UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION
//   - POLICY_VIOLATION: a setting of the broker's own topics that keeps a coordinator going
//   - TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED: no ALTER_CONFIGS
//   - KAFKA_STORAGE_ERROR: the metadata log can not be written
func handleIncrementalAlterConfigs(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.IncrementalAlterConfigsRequest)
	var resources []*resourceChange
	for i := range req.Resources {
		rr := &req.Resources[i]
		r := &resourceChange{kind: rr.ResourceType, name: rr.ResourceName}
		for _, kv := range rr.Configs {
			a := metadata.Alteration{Name: kv.Name, Op: metadata.Op(kv.Op)}
			switch {
			case kv.Value != nil:
				a.Value = *kv.Value
			case a.Op != metadata.OpDelete:
				r.nulls = append(r.nulls, kv.Name)
			}
			r.alterations = append(r.alterations, a)
		}
		resources = append(resources, r)
	}
	s.alterResources(c, resources, req.ValidateOnly, func() {
		resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
		for _, r := range resources {
			row := kmsg.NewIncrementalAlterConfigsResponseResource()
			row.ResourceType, row.ResourceName = r.kind, r.name
			row.ErrorCode, row.ErrorMessage = r.outcome()
			resp.Resources = append(resp.Resources, row)
		}
		reply(resp)
	})
}
