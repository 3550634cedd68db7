package api

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/metadata"
)

// CreateTopics: versions 2 to 7.
//
// Each topic is decided on its own; those that are fine are created in one step
// and the answer leaves when they are durable and their partitions open.
// ValidateOnly decides without creating. From version 5 on the answer lists the
// topic's configuration, from 7 on its id.
//
//   - INVALID_TOPIC_EXCEPTION: the name is no topic name, or differs from an
//     existing one only in '.' and '_'
//   - INVALID_REQUEST: the name is twice in the request, or __cluster_metadata, or
//     an assignment comes with counts
//   - TOPIC_AUTHORIZATION_FAILED: no CREATE
//   - TOPIC_ALREADY_EXISTS
//   - INVALID_PARTITIONS, POLICY_VIOLATION: none, or too many at once
//   - INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT: this is one node
//   - INVALID_CONFIG: a key that is unknown, or a value that is malformed or can
//     not be honoured
//   - KAFKA_STORAGE_ERROR: the metadata log or a partition can not be written
func handleCreateTopics(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.CreateTopicsRequest)
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	count := map[string]int{}
	for i := range req.Topics {
		count[req.Topics[i].Topic]++
	}
	var created []int // rows of resp that stand and fall with the change
	s.Meta.Change(func(im *metadata.Image) ([]metadata.Change, error) {
		var changes []metadata.Change
		room := s.Config.MaxPartitionsPerRequest
		for i := range req.Topics {
			rt := &req.Topics[i]
			if count[rt.Topic] == 0 {
				continue // answered already
			}
			row, more := s.createTopic(c, rt, im, count[rt.Topic] > 1, &room)
			count[rt.Topic] = 0
			if row.ErrorCode == 0 && !req.ValidateOnly {
				created = append(created, len(resp.Topics))
				changes = append(changes, more...)
			}
			resp.Topics = append(resp.Topics, row)
		}
		return changes, nil
	}, func(_ *metadata.Image, err error) {
		for _, i := range created {
			if err != nil {
				resp.Topics[i] = failedTopic(resp.Topics[i].Topic, err)
			}
		}
		if err != nil && len(resp.Topics) == 0 { // the change was never looked at
			for i := range req.Topics {
				resp.Topics = append(resp.Topics, failedTopic(req.Topics[i].Topic, err))
			}
		}
		reply(resp)
	})
}

func failedTopic(name string, err error) kmsg.CreateTopicsResponseTopic {
	row := kmsg.NewCreateTopicsResponseTopic()
	row.Topic, row.ErrorCode, row.ErrorMessage = name, codeOf(err), kmsg.StringPtr(err.Error())
	row.NumPartitions, row.ReplicationFactor = -1, -1
	return row
}

// createTopic decides about one topic. room is how many more partitions the
// request may ask for.
func (s *Server) createTopic(c *Call, rt *kmsg.CreateTopicsRequestTopic, im *metadata.Image, twice bool, room *int32) (kmsg.CreateTopicsResponseTopic, []metadata.Change) {
	config, n, err := s.planTopic(c, rt, im, twice, *room)
	if err != nil {
		return failedTopic(rt.Topic, err), nil
	}
	*room -= n
	id := metadata.NewIDFrom(s.Random)
	row := kmsg.NewCreateTopicsResponseTopic()
	row.Topic, row.TopicID, row.NumPartitions, row.ReplicationFactor = rt.Topic, id, n, 1
	if s.Authorize(c.Principal, kmsg.ACLOperationDescribeConfigs, kmsg.ACLResourceTypeTopic, rt.Topic) {
		row.Configs = createdConfigs(im.Settings(&metadata.Topic{Name: rt.Topic, Config: config}, s.Config.Static))
	} else {
		row.ConfigErrorCode = kerr.TopicAuthorizationFailed.Code
		row.NumPartitions, row.ReplicationFactor = -1, -1
	}
	return row, metadata.NewTopic(im.NodeID, rt.Topic, id, n, config)
}

// planTopic applies the rules, in Kafka's order.
func (s *Server) planTopic(c *Call, rt *kmsg.CreateTopicsRequestTopic, im *metadata.Image, twice bool, room int32) (map[string]string, int32, error) {
	switch {
	case twice:
		return nil, 0, &refusal{kerr.InvalidRequest.Code, "Duplicate topic name."}
	case rt.Topic == metadata.LogTopic:
		return nil, 0, &refusal{kerr.InvalidRequest.Code, "Creation of internal topic __cluster_metadata is prohibited."}
	case !s.mayCreate(c, rt.Topic):
		return nil, 0, &refusal{kerr.TopicAuthorizationFailed.Code, "Authorization failed."}
	}
	if err := metadata.ValidateName(rt.Topic); err != nil {
		return nil, 0, &refusal{kerr.InvalidTopicException.Code, err.Error()}
	}
	if im.Topic(rt.Topic) != nil {
		return nil, 0, &refusal{kerr.TopicAlreadyExists.Code, fmt.Sprintf("Topic '%s' already exists.", rt.Topic)}
	}
	if other := metadata.Collides(im, rt.Topic); other != "" {
		return nil, 0, &refusal{kerr.InvalidTopicException.Code, fmt.Sprintf("Topic '%s' collides with existing topic: %s", rt.Topic, other)}
	}
	config, err := topicConfig(rt.Configs)
	if err != nil {
		return nil, 0, err
	}
	n, err := s.partitionCount(rt)
	if err != nil {
		return nil, 0, err
	}
	if n > room {
		return nil, 0, &refusal{kerr.PolicyViolation.Code, "Excessively large number of partitions per request."}
	}
	return config, n, nil
}

func topicConfig(configs []kmsg.CreateTopicsRequestTopicConfig) (map[string]string, error) {
	out := make(map[string]string, len(configs))
	for _, kv := range configs {
		if kv.Value == nil {
			return nil, &refusal{kerr.InvalidConfig.Code, "Null value not supported for topic configs: " + kv.Name}
		}
		out[kv.Name] = *kv.Value
	}
	if err := metadata.ValidateTopicConfigs(out); err != nil {
		return nil, &refusal{kerr.InvalidConfig.Code, err.Error()}
	}
	return out, nil
}

// partitionCount checks counts and assignment; -1 stands for the defaults.
func (s *Server) partitionCount(rt *kmsg.CreateTopicsRequestTopic) (int32, error) {
	if len(rt.ReplicaAssignment) > 0 {
		return s.assignedCount(rt)
	}
	switch rf := rt.ReplicationFactor; {
	case rf < -1 || rf == 0:
		return 0, &refusal{kerr.InvalidReplicationFactor.Code, "Replication factor must be larger than 0, or -1 to use the default value."}
	case rt.NumPartitions < -1 || rt.NumPartitions == 0:
		return 0, &refusal{kerr.InvalidPartitions.Code, "Number of partitions was set to an invalid non-positive value."}
	case rf > 1:
		return 0, &refusal{kerr.InvalidReplicationFactor.Code, fmt.Sprintf("Unable to replicate the partition %d time(s): "+
			"The target replication factor of %d cannot be reached because only 1 broker(s) are registered.", rf, rf)}
	case rt.NumPartitions == -1:
		return s.Config.DefaultPartitions, nil
	}
	return rt.NumPartitions, nil
}

// assignedCount checks a manual assignment, which on one node can only name that
// node.
func (s *Server) assignedCount(rt *kmsg.CreateTopicsRequestTopic) (int32, error) {
	bad := func(format string, args ...any) (int32, error) {
		return 0, &refusal{kerr.InvalidReplicaAssignment.Code, fmt.Sprintf(format, args...)}
	}
	switch {
	case rt.ReplicationFactor != -1:
		return 0, &refusal{kerr.InvalidRequest.Code, "A manual partition assignment was specified, but replication factor was not set to -1."}
	case rt.NumPartitions != -1:
		return 0, &refusal{kerr.InvalidRequest.Code, "A manual partition assignment was specified, but numPartitions was not set to -1."}
	}
	n := int32(len(rt.ReplicaAssignment))
	seen := make(map[int32]bool, n)
	for _, a := range rt.ReplicaAssignment {
		if seen[a.Partition] {
			return bad("Found multiple manual partition assignments for partition %d", a.Partition)
		}
		seen[a.Partition] = true
		if len(a.Replicas) == 0 {
			return bad("The manual partition assignment includes an empty replica list.")
		}
		for i, r := range a.Replicas {
			switch {
			case r != s.Config.NodeID:
				return bad("The manual partition assignment includes broker %d, but no such broker is registered.", r)
			case i > 0:
				return bad("The manual partition assignment includes the broker %d more than once.", r)
			}
		}
	}
	for i := range n {
		if !seen[i] {
			return bad("partitions should be a consecutive 0-based integer sequence")
		}
	}
	return n, nil
}

// createdConfigs lists a new topic's whole configuration.
func createdConfigs(settings metadata.Settings) []kmsg.CreateTopicsResponseTopicConfig {
	var out []kmsg.CreateTopicsResponseTopicConfig
	for _, k := range metadata.TopicConfigs() {
		if k.Hidden {
			continue
		}
		v := settings.InForce(&k)
		row := kmsg.NewCreateTopicsResponseTopicConfig()
		row.Name, row.Value, row.Source = k.Name, kmsg.StringPtr(v.Value), int8(v.Source)
		out = append(out, row)
	}
	return out
}
