package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/metadata"
)

// AlterConfigs: versions 0 to 2.
//
// It makes the settings of a resource those given, and resets all others: the older of the two requests. All else is as in
// IncrementalAlterConfigs.
func handleAlterConfigs(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.AlterConfigsRequest)
	var resources []*resourceChange
	for i := range req.Resources {
		rr := &req.Resources[i]
		r := &resourceChange{kind: rr.ResourceType, name: rr.ResourceName, replace: true}
		for _, kv := range rr.Configs {
			a := metadata.Alteration{Name: kv.Name}
			if kv.Value == nil {
				r.nulls = append(r.nulls, kv.Name)
			} else {
				a.Value = *kv.Value
			}
			r.alterations = append(r.alterations, a)
		}
		resources = append(resources, r)
	}
	s.alterResources(c, resources, req.ValidateOnly, func() {
		resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
		for _, r := range resources {
			row := kmsg.NewAlterConfigsResponseResource()
			row.ResourceType, row.ResourceName = r.kind, r.name
			row.ErrorCode, row.ErrorMessage = r.outcome()
			resp.Resources = append(resp.Resources, row)
		}
		reply(resp)
	})
}
