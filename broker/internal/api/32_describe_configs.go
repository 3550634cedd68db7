package api

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/metadata"
)

// DescribeConfigs: versions 1 to 4.
//
// Topic configurations come from the one table in metadata, with where each value
// is from, synonyms and documentation where asked for. Broker configurations are the
// broker-level names of that table, which can be changed, and the settings of this
// process, which can not. A null or empty list of names means all, an unknown name
// gives no row, as in Kafka.
//
//   - UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION
//   - TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED: no DESCRIBE_CONFIGS
//   - INVALID_REQUEST: another broker, or a resource type without configurations
func handleDescribeConfigs(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.DescribeConfigsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	for i := range req.Resources {
		r := &req.Resources[i]
		row := kmsg.NewDescribeConfigsResponseResource()
		row.ResourceType, row.ResourceName = r.ResourceType, r.ResourceName
		row.ErrorMessage = kmsg.StringPtr("")
		var err error
		switch r.ResourceType {
		case kmsg.ConfigResourceTypeTopic:
			row.Configs, err = s.describeTopic(c, r, req)
		case kmsg.ConfigResourceTypeBroker:
			row.Configs, err = s.describeBroker(c, r, req)
		default:
			err = &refusal{kerr.InvalidRequest.Code, fmt.Sprintf("resources of type %d have no configurations here", r.ResourceType)}
		}
		if err != nil {
			row.ErrorCode, row.ErrorMessage = codeOf(err), kmsg.StringPtr(err.Error())
		}
		resp.Resources = append(resp.Resources, row)
	}
	reply(resp)
}

func wantedConfig(r *kmsg.DescribeConfigsRequestResource, name string) bool {
	if len(r.ConfigNames) == 0 {
		return true
	}
	for _, n := range r.ConfigNames {
		if n == name {
			return true
		}
	}
	return false
}

func (s *Server) describeTopic(c *Call, r *kmsg.DescribeConfigsRequestResource, req *kmsg.DescribeConfigsRequest) ([]kmsg.DescribeConfigsResponseResourceConfig, error) {
	if !s.Authorize(c.Principal, kmsg.ACLOperationDescribeConfigs, kmsg.ACLResourceTypeTopic, r.ResourceName) {
		return nil, kerr.TopicAuthorizationFailed
	}
	if err := metadata.ValidateName(r.ResourceName); err != nil {
		return nil, &refusal{kerr.InvalidTopicException.Code, err.Error()}
	}
	t := s.Meta.Image().Topic(r.ResourceName)
	if t == nil {
		return nil, &refusal{kerr.UnknownTopicOrPartition.Code, ""}
	}
	return describeKeys(r, req, s.Meta.Image().Settings(t, s.Config.Static), func(k *metadata.ConfigKey) string { return k.Name }), nil
}

// describeKeys lists the keys of the table, under the name that nameOf gives them; "" leaves one out.
func describeKeys(r *kmsg.DescribeConfigsRequestResource, req *kmsg.DescribeConfigsRequest, settings metadata.Settings, nameOf func(*metadata.ConfigKey) string) (out []kmsg.DescribeConfigsResponseResourceConfig) {
	keys := metadata.TopicConfigs()
	for i := range keys {
		k := &keys[i]
		name := nameOf(k)
		if k.Hidden || name == "" || !wantedConfig(r, name) {
			continue
		}
		v := settings.InForce(k)
		row := kmsg.NewDescribeConfigsResponseResourceConfig()
		row.Name, row.Value, row.ConfigType = name, kmsg.StringPtr(v.Value), kmsg.ConfigType(k.Type)
		row.Source = kmsg.ConfigSource(v.Source)
		row.IsDefault = v.Source == metadata.FromDefault
		if req.IncludeSynonyms {
			for _, v := range settings.Values(k) {
				synonym := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
				synonym.Name, synonym.Value, synonym.Source = v.Name, kmsg.StringPtr(v.Value), kmsg.ConfigSource(v.Source)
				row.ConfigSynonyms = append(row.ConfigSynonyms, synonym)
			}
		}
		if req.IncludeDocumentation {
			row.Documentation = kmsg.StringPtr(k.Doc)
		}
		out = append(out, row)
	}
	return out
}

// describeBroker lists the settings of this process that have a name in Kafka, and those that topics take over where they do not
// say themselves. Without a name it lists only what was set for all brokers.
func (s *Server) describeBroker(c *Call, r *kmsg.DescribeConfigsRequestResource, req *kmsg.DescribeConfigsRequest) ([]kmsg.DescribeConfigsResponseResourceConfig, error) {
	if !s.Authorize(c.Principal, kmsg.ACLOperationDescribeConfigs, kmsg.ACLResourceTypeCluster, clusterResource) {
		return nil, kerr.ClusterAuthorizationFailed
	}
	im := s.Meta.Image()
	if r.ResourceName == metadata.AllBrokers {
		all := im.Broker(metadata.AllBrokers)
		return describeKeys(r, req, im.BrokersSettings(), func(k *metadata.ConfigKey) string {
			if _, set := all[k.Synonym]; !set {
				return ""
			}
			return k.Synonym
		}), nil
	}
	id, err := strconv.ParseInt(r.ResourceName, 10, 32)
	switch {
	case err != nil:
		return nil, &refusal{kerr.InvalidRequest.Code, "Broker id must be an integer, but it is: " + r.ResourceName}
	case int32(id) != s.Config.NodeID:
		return nil, &refusal{kerr.InvalidRequest.Code, fmt.Sprintf("Unexpected broker id, expected %d or empty string, but received %s", s.Config.NodeID, r.ResourceName)}
	}
	out := describeKeys(r, req, im.BrokerSettings(s.Config.Static), func(k *metadata.ConfigKey) string { return k.Synonym })
	for _, k := range s.Config.Settings {
		if !wantedConfig(r, k.Name) {
			continue
		}
		row := kmsg.NewDescribeConfigsResponseResourceConfig()
		row.Name, row.Value, row.ConfigType = k.Name, kmsg.StringPtr(k.Value), k.Type
		row.ReadOnly, row.Source = true, kmsg.ConfigSourceStaticBrokerConfig
		if req.IncludeDocumentation {
			row.Documentation = kmsg.StringPtr(k.Doc)
		}
		out = append(out, row)
	}
	return out, nil
}
