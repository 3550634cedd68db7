package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/txn/producer"
)

// mayReadGroup: being a member of a group, and committing its offsets, is reading
// it.
func (s *Server) mayReadGroup(c *Call, name string) bool {
	return s.Authorize(c.Principal, kmsg.ACLOperationRead, kmsg.ACLResourceTypeGroup, name)
}

// clientOf is who a group's member is, as its record says; Kafka writes addresses
// with a slash before them.
func clientOf(c *Call) group.Client { return group.Client{ID: c.ClientID, Host: "/" + c.Host} }

// groupFailure is the code for a failure of the group coordinator to store what a
// member said: what does not fit in one batch is nothing that the member could
// retry (Kafka's code as well).
func groupFailure(f coord.Failure) int16 {
	if f.Code == coord.CodeRecordListTooLarge {
		return kerr.UnknownServerError.Code
	}
	return f.Code
}

// commitFailure is the code for a failure to store offsets. The partition of a
// transactional commit knows best whether its producer was fenced.
func commitFailure(f coord.Failure) int16 {
	if e, ok := errors.AsType[*producer.Error](f.Err); ok {
		return e.Code
	}
	if f.Code == coord.CodeRecordListTooLarge {
		return kerr.InvalidCommitOffsetSize.Code
	}
	return f.Code
}

// commitTopic finds the topic that offsets are committed for: by name, or by id in
// the versions that have ids. The code is 0 if the caller may do it.
func (s *Server) commitTopic(c *Call, im *metadata.Image, name string, id metadata.ID, byID bool) (*metadata.Topic, int16) {
	t := im.Topic(name)
	if byID {
		if t = im.TopicByID(id); t == nil {
			return nil, kerr.UnknownTopicID.Code
		}
		name = t.Name
	}
	if !s.Authorize(c.Principal, kmsg.ACLOperationRead, kmsg.ACLResourceTypeTopic, name) {
		return nil, kerr.TopicAuthorizationFailed.Code
	}
	if t == nil {
		return nil, kerr.UnknownTopicOrPartition.Code
	}
	return t, 0
}
