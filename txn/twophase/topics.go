package twophase

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topic is what a producer must know of one.
type topic struct {
	id      [16]byte
	leaders []int32 // by partition, -1 for none now
}

// lookUp reads the metadata of a topic; one that does not exist is an error, none is created.
func (c *client) lookUp(ctx context.Context, name string) (t topic, err error) {
	err = c.retry(ctx, "metadata of topic "+name, func() error {
		req := kmsg.NewPtrMetadataRequest()
		rt := kmsg.NewMetadataRequestTopic()
		rt.Topic = &name
		req.Topics = append(req.Topics, rt)
		resp, err := req.RequestWith(ctx, c.kgo)
		if err != nil {
			return err
		}
		for _, rt := range resp.Topics {
			if err := kerr.ErrorForCode(rt.ErrorCode); err != nil {
				if rt.ErrorCode == kerr.UnknownTopicOrPartition.Code {
					return permanent{err}
				}
				return err
			}
			t = topic{id: rt.TopicID, leaders: make([]int32, len(rt.Partitions))}
			for _, p := range rt.Partitions {
				if p.Partition < 0 || int(p.Partition) >= len(t.leaders) {
					return permanent{fmt.Errorf("partition %d of %d", p.Partition, len(t.leaders))}
				}
				t.leaders[p.Partition] = p.Leader
				if p.ErrorCode != 0 {
					t.leaders[p.Partition] = -1
				}
			}
		}
		return nil
	})
	return t, err
}

// createTopic makes a topic of one partition; that it exists already is no error.
func (c *client) createTopic(ctx context.Context, name string, config map[string]string) error {
	return c.retry(ctx, "create topic "+name, func() error {
		req := kmsg.NewPtrCreateTopicsRequest()
		rt := kmsg.NewCreateTopicsRequestTopic()
		rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, 1, -1
		for k, v := range config {
			rc := kmsg.NewCreateTopicsRequestTopicConfig()
			rc.Name, rc.Value = k, kmsg.StringPtr(v)
			rt.Configs = append(rt.Configs, rc)
		}
		req.Topics = append(req.Topics, rt)
		resp, err := req.RequestWith(ctx, c.kgo)
		if err != nil {
			return err
		}
		for _, rt := range resp.Topics {
			if err := kerr.ErrorForCode(rt.ErrorCode); err != nil && rt.ErrorCode != kerr.TopicAlreadyExists.Code {
				return err
			}
		}
		return nil
	})
}
