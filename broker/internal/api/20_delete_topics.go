package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/metadata"
)

// DeleteTopics: versions 1 to 6, from version 6 on by name or by id.
//
// The answer leaves when the deletion is durable; the partitions are closed then,
// their folders gone, and the topic's committed offsets dropped. Topics that fail
// do not keep the others from going.
//
//   - INVALID_REQUEST: name and id together, or twice in the request, or neither
//   - UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID
//   - TOPIC_AUTHORIZATION_FAILED: no DELETE; UNKNOWN_TOPIC_ID where the client gave
//     an id and may not even DESCRIBE the topic
//   - INVALID_TOPIC_EXCEPTION: an internal topic, which nobody may delete
func handleDeleteTopics(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.DeleteTopicsRequest)
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	wanted := req.Topics
	for i := range req.TopicNames {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &req.TopicNames[i]
		wanted = append(wanted, t)
	}
	var deleted []int // rows of resp that stand and fall with the change
	s.Meta.Change(func(im *metadata.Image) ([]metadata.Change, error) {
		var changes []metadata.Change
		rows := s.planDeletes(c, im, wanted)
		for _, p := range rows {
			if p.topic != nil {
				deleted = append(deleted, len(resp.Topics))
				changes = append(changes, metadata.RemoveTopicChange{ID: p.topic.ID})
			}
			resp.Topics = append(resp.Topics, p.row)
		}
		return changes, nil
	}, func(_ *metadata.Image, err error) {
		if err != nil {
			for _, i := range deleted {
				setDeleteError(&resp.Topics[i], codeOf(err), err.Error())
			}
			for i := len(resp.Topics); i < len(wanted); i++ { // the change was never looked at
				row := kmsg.NewDeleteTopicsResponseTopic()
				row.Topic, row.TopicID = wanted[i].Topic, wanted[i].TopicID
				setDeleteError(&row, codeOf(err), err.Error())
				resp.Topics = append(resp.Topics, row)
			}
		}
		reply(resp)
	})
}

// plannedDelete is the answer for one topic, and the topic if it is to go.
type plannedDelete struct {
	row   kmsg.DeleteTopicsResponseTopic
	topic *metadata.Topic
}

const unknownTopicText = "This server does not host this topic-partition."

func setDeleteError(row *kmsg.DeleteTopicsResponseTopic, code int16, text string) {
	row.ErrorCode, row.ErrorMessage = code, kmsg.StringPtr(text)
}

func (s *Server) planDeletes(c *Call, im *metadata.Image, wanted []kmsg.DeleteTopicsRequestTopic) []plannedDelete {
	names, ids := map[string]int{}, map[metadata.ID]int{}
	for i := range wanted {
		if w := &wanted[i]; w.Topic != nil {
			names[*w.Topic]++
		} else {
			ids[w.TopicID]++
		}
	}
	var out []plannedDelete
	going := map[metadata.ID]bool{}
	for i := range wanted {
		w := &wanted[i]
		n := 0
		if w.Topic != nil {
			n, names[*w.Topic] = names[*w.Topic], 0
		} else {
			n, ids[w.TopicID] = ids[w.TopicID], 0
		}
		if n == 0 {
			continue // answered already
		}
		p := s.planDelete(c, im, w, n > 1)
		if p.topic != nil && going[p.topic.ID] { // by name and by id
			p.topic = nil
			setDeleteError(&p.row, kerr.InvalidRequest.Code, "The provided topic name maps to an ID that was already supplied.")
		}
		if p.topic != nil {
			going[p.topic.ID] = true
		}
		out = append(out, p)
	}
	return out
}

func (s *Server) planDelete(c *Call, im *metadata.Image, w *kmsg.DeleteTopicsRequestTopic, twice bool) plannedDelete {
	p := plannedDelete{row: kmsg.NewDeleteTopicsResponseTopic()}
	p.row.Topic, p.row.TopicID = w.Topic, w.TopicID
	byID := w.TopicID != metadata.ID{}
	var t *metadata.Topic
	switch {
	case w.Topic != nil && byID:
		setDeleteError(&p.row, kerr.InvalidRequest.Code, "You may not specify both topic name and topic id.")
		return p
	case w.Topic == nil && !byID:
		setDeleteError(&p.row, kerr.InvalidRequest.Code, "Neither topic name nor id were specified.")
		return p
	case twice && byID:
		setDeleteError(&p.row, kerr.InvalidRequest.Code, "Duplicate topic id.")
		return p
	case twice:
		setDeleteError(&p.row, kerr.InvalidRequest.Code, "Duplicate topic name.")
		return p
	case byID:
		t = im.TopicByID(w.TopicID)
	default:
		t = im.Topic(*w.Topic)
	}
	name := ""
	if t != nil {
		name = t.Name
	} else if w.Topic != nil {
		name = *w.Topic
	}
	may := func(op kmsg.ACLOperation) bool {
		return s.Authorize(c.Principal, op, kmsg.ACLResourceTypeTopic, name)
	}
	switch {
	case byID && (t == nil || !may(kmsg.ACLOperationDescribe)):
		setDeleteError(&p.row, kerr.UnknownTopicID.Code, "This server does not host this topic ID.")
	case !may(kmsg.ACLOperationDelete):
		setDeleteError(&p.row, kerr.TopicAuthorizationFailed.Code, "Authorization failed.")
	case t == nil:
		setDeleteError(&p.row, kerr.UnknownTopicOrPartition.Code, unknownTopicText)
	case t.Internal:
		setDeleteError(&p.row, kerr.InvalidTopicException.Code, "Topic "+t.Name+" belongs to the broker and can not be deleted.")
	default:
		p.topic = t
		p.row.Topic, p.row.TopicID = &t.Name, t.ID
	}
	return p
}
