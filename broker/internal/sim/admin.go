package sim

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// admin makes the topics, as an operator's tool does.
type admin struct{ *process }

// create makes a topic and calls done when it exists.
func (a *admin) create(topic string, n int32, config map[string]string, done func()) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version = 5
	req.TimeoutMillis = 1000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = topic, n, 1
	for _, key := range []string{"internal.segment.bytes", "retention.ms", "cleanup.policy", "index.interval.bytes", "min.cleanable.dirty.ratio",
		"delete.retention.ms", "millrace.durability", "flush.ms", "flush.messages"} {
		if v, ok := config[key]; ok {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = key, &v
			rt.Configs = append(rt.Configs, c)
		}
	}
	req.Topics = append(req.Topics, rt)
	a.call(toData, req, time.Second, always, func(r kmsg.Response, err error) {
		if err == nil {
			code := r.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode
			a.w.log("%s: create %s: %s", a.name, topic, word(code))
			if code == 0 || code == kerr.TopicAlreadyExists.Code {
				done()
				return
			}
		}
		a.after(a.w.between(5*time.Millisecond, 50*time.Millisecond), "create again", func() { a.create(topic, n, config, done) })
	})
}
