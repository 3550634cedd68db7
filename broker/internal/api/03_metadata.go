package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/metadata"
)

// Metadata: versions 0 to 13.
//
// Brokers with the address that clients of this listener can reach, and topics:
// all of them (a null list; an empty one in version 0), or those that are named
// by name or, from version 10, by id. A missing topic is created when client and
// configuration allow it; the answer waits until it is durable, so the first
// produce after it works. Of many requests at once only one creates it.
//
//   - UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID
//   - INVALID_TOPIC_EXCEPTION: a name that no topic can have
//   - TOPIC_AUTHORIZATION_FAILED: no DESCRIBE, or no CREATE for a missing one
//   - UNKNOWN_SERVER_ERROR: neither name nor id, as in Kafka
func handleMetadata(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.MetadataRequest)
	create := s.missingTopics(c, req)
	if len(create) == 0 {
		reply(s.metadataResponse(c, req, s.Meta.Image(), nil))
		return
	}
	s.Meta.Change(func(im *metadata.Image) ([]metadata.Change, error) {
		var changes []metadata.Change
		for _, name := range create {
			// Another request may have been first.
			if im.Topic(name) == nil && metadata.Collides(im, name) == "" {
				changes = append(changes, metadata.NewTopic(im.NodeID, name, metadata.NewIDFrom(s.Random), s.Config.DefaultPartitions, nil)...)
			}
		}
		return changes, nil
	}, func(im *metadata.Image, err error) {
		if im == nil {
			im = s.Meta.Image()
		}
		reply(s.metadataResponse(c, req, im, err))
	})
}

// missingTopics lists the topics that the request makes the broker create.
func (s *Server) missingTopics(c *Call, req *kmsg.MetadataRequest) []string {
	if !s.Config.AutoCreateTopics || c.Version >= 4 && !req.AllowAutoTopicCreation {
		return nil
	}
	im := s.Meta.Image()
	var out []string
	seen := map[string]bool{}
	for i := range req.Topics {
		t := &req.Topics[i]
		if t.Topic == nil || t.TopicID != (metadata.ID{}) {
			continue
		}
		name := *t.Topic
		if seen[name] || im.Topic(name) != nil || metadata.ValidateName(name) != nil || metadata.IsInternal(name) {
			continue
		}
		seen[name] = true
		if s.mayCreate(c, name) {
			out = append(out, name)
		}
	}
	return out
}

// mayCreate says whether the principal may create the topic: CREATE on the
// cluster or on the name.
func (s *Server) mayCreate(c *Call, name string) bool {
	return s.Authorize(c.Principal, kmsg.ACLOperationCreate, kmsg.ACLResourceTypeCluster, clusterResource) ||
		s.Authorize(c.Principal, kmsg.ACLOperationCreate, kmsg.ACLResourceTypeTopic, name)
}

// clusterResource is the name of the one cluster resource.
const clusterResource = "kafka-cluster"

// metadataResponse answers from an image; failed is why topics could not be
// created.
func (s *Server) metadataResponse(c *Call, req *kmsg.MetadataRequest, im *metadata.Image, failed error) *kmsg.MetadataResponse {
	resp := req.ResponseKind().(*kmsg.MetadataResponse)
	host, port := s.Advertised(c.Listener, c.Local)
	b := kmsg.NewMetadataResponseBroker()
	b.NodeID, b.Host, b.Port = s.Config.NodeID, host, port
	resp.Brokers = append(resp.Brokers, b)
	resp.ClusterID = kmsg.StringPtr(im.ClusterID)
	resp.ControllerID = s.Config.NodeID
	if req.IncludeClusterAuthorizedOperations {
		resp.AuthorizedOperations = s.allowedOperations(c, kmsg.ACLResourceTypeCluster, clusterResource, clusterOperations)
	}
	if req.Topics == nil || c.Version == 0 && len(req.Topics) == 0 {
		for _, name := range im.Names() {
			if s.Authorize(c.Principal, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTopic, name) {
				resp.Topics = append(resp.Topics, s.topicMetadata(c, req, im.Topic(name)))
			}
		}
		return resp
	}
	type key struct {
		name string
		id   metadata.ID
	}
	seen := map[key]bool{}
	for i := range req.Topics {
		t := &req.Topics[i]
		k := key{id: t.TopicID}
		if t.Topic != nil {
			k.name = *t.Topic
		}
		if !seen[k] {
			seen[k] = true
			resp.Topics = append(resp.Topics, s.namedTopic(c, req, im, t, failed))
		}
	}
	return resp
}

// namedTopic answers one entry of the request.
func (s *Server) namedTopic(c *Call, req *kmsg.MetadataRequest, im *metadata.Image, rt *kmsg.MetadataRequestTopic, failed error) kmsg.MetadataResponseTopic {
	row := kmsg.NewMetadataResponseTopic()
	row.Topic, row.TopicID = rt.Topic, rt.TopicID
	if c.Version < 12 && row.Topic == nil {
		row.Topic = kmsg.StringPtr("") // not nullable before version 12
	}
	var t *metadata.Topic
	byID := rt.TopicID != metadata.ID{}
	switch {
	case byID:
		t = im.TopicByID(rt.TopicID)
	case rt.Topic == nil:
		row.Topic = kmsg.StringPtr("")
		row.ErrorCode = kerr.UnknownServerError.Code
		return row
	default:
		if err := metadata.ValidateName(*rt.Topic); err != nil {
			row.ErrorCode = kerr.InvalidTopicException.Code
			return row
		}
		t = im.Topic(*rt.Topic)
	}
	name := ""
	switch {
	case t != nil:
		name = t.Name
	case !byID:
		name = *rt.Topic
	}
	allowed := s.Authorize(c.Principal, kmsg.ACLOperationDescribe, kmsg.ACLResourceTypeTopic, name)
	switch {
	case byID && (t == nil || !allowed):
		row.ErrorCode = kerr.UnknownTopicID.Code // and not a word about a topic that may exist
	case !allowed:
		row.ErrorCode = kerr.TopicAuthorizationFailed.Code
	case t == nil && failed != nil:
		row.ErrorCode = codeOf(failed)
	case t == nil && metadata.Collides(im, name) != "": // why it was not created
		row.ErrorCode = kerr.InvalidTopicException.Code
	case t == nil:
		row.ErrorCode = kerr.UnknownTopicOrPartition.Code
	default:
		return s.topicMetadata(c, req, t)
	}
	return row
}

func (s *Server) topicMetadata(c *Call, req *kmsg.MetadataRequest, t *metadata.Topic) kmsg.MetadataResponseTopic {
	row := kmsg.NewMetadataResponseTopic()
	row.Topic, row.TopicID, row.IsInternal = kmsg.StringPtr(t.Name), t.ID, t.Internal
	if req.IncludeTopicAuthorizedOperations {
		row.AuthorizedOperations = s.allowedOperations(c, kmsg.ACLResourceTypeTopic, t.Name, topicOperations)
	}
	row.Partitions = make([]kmsg.MetadataResponseTopicPartition, len(t.Partitions))
	for i, p := range t.Partitions {
		out := kmsg.NewMetadataResponseTopicPartition()
		out.Partition, out.Leader, out.LeaderEpoch = int32(i), p.Leader, p.LeaderEpoch
		out.Replicas, out.ISR = []int32{p.Leader}, []int32{p.Leader}
		row.Partitions[i] = out
	}
	return row
}

// The operations that a resource can have, for answers that list the allowed
// ones.
var (
	topicOperations = []kmsg.ACLOperation{
		kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationCreate, kmsg.ACLOperationDelete,
		kmsg.ACLOperationAlter, kmsg.ACLOperationDescribe, kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs,
	}
	clusterOperations = []kmsg.ACLOperation{
		kmsg.ACLOperationCreate, kmsg.ACLOperationAlter, kmsg.ACLOperationDescribe, kmsg.ACLOperationClusterAction,
		kmsg.ACLOperationDescribeConfigs, kmsg.ACLOperationAlterConfigs, kmsg.ACLOperationIdempotentWrite,
	}
)

// allowedOperations is the bit field of what the principal may do, one bit for
// each operation's number.
func (s *Server) allowedOperations(c *Call, kind kmsg.ACLResourceType, name string, ops []kmsg.ACLOperation) int32 {
	var bits int32
	for _, op := range ops {
		if s.Authorize(c.Principal, op, kind, name) {
			bits |= 1 << op
		}
	}
	return bits
}
