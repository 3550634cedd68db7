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
// is from, synonyms and documentation where asked for; broker configurations are
// the settings of this process, read only. A null or empty list of names means all,
// an unknown name gives no row, as in Kafka.
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
	var out []kmsg.DescribeConfigsResponseResourceConfig
	for _, k := range metadata.TopicConfigs() {
		if k.Hidden || !wantedConfig(r, k.Name) {
			continue
		}
		value, set := t.Config[k.Name]
		if !set {
			value = k.Default
		}
		row := kmsg.NewDescribeConfigsResponseResourceConfig()
		row.Name, row.Value, row.ConfigType = k.Name, kmsg.StringPtr(value), kmsg.ConfigType(k.Type)
		row.Source = kmsg.ConfigSourceDefaultConfig
		if set {
			row.Source = kmsg.ConfigSourceDynamicTopicConfig
		}
		row.IsDefault = !set
		if req.IncludeSynonyms {
			row.ConfigSynonyms = topicSynonyms(&k, value, set)
		}
		if req.IncludeDocumentation {
			row.Documentation = kmsg.StringPtr(k.Doc)
		}
		out = append(out, row)
	}
	return out, nil
}

// topicSynonyms lists where a value could come from, the one in force first.
func topicSynonyms(k *metadata.ConfigKey, value string, set bool) []kmsg.DescribeConfigsResponseResourceConfigConfigSynonym {
	var out []kmsg.DescribeConfigsResponseResourceConfigConfigSynonym
	add := func(name, value string, source kmsg.ConfigSource) {
		row := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
		row.Name, row.Value, row.Source = name, kmsg.StringPtr(value), source
		out = append(out, row)
	}
	if set {
		add(k.Name, value, kmsg.ConfigSourceDynamicTopicConfig)
	}
	if k.Synonym != "" {
		add(k.Synonym, k.Default, kmsg.ConfigSourceDefaultConfig)
	}
	return out
}

// describeBroker lists the settings of this process that have a name in Kafka.
func (s *Server) describeBroker(c *Call, r *kmsg.DescribeConfigsRequestResource, req *kmsg.DescribeConfigsRequest) ([]kmsg.DescribeConfigsResponseResourceConfig, error) {
	if !s.Authorize(c.Principal, kmsg.ACLOperationDescribeConfigs, kmsg.ACLResourceTypeCluster, clusterResource) {
		return nil, kerr.ClusterAuthorizationFailed
	}
	if r.ResourceName != "" {
		id, err := strconv.ParseInt(r.ResourceName, 10, 32)
		switch {
		case err != nil:
			return nil, &refusal{kerr.InvalidRequest.Code, "Broker id must be an integer, but it is: " + r.ResourceName}
		case int32(id) != s.Config.NodeID:
			return nil, &refusal{kerr.InvalidRequest.Code, fmt.Sprintf("Unexpected broker id, expected %d or empty string, but received %s", s.Config.NodeID, r.ResourceName)}
		}
	}
	var out []kmsg.DescribeConfigsResponseResourceConfig
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
