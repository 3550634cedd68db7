package broker_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/core/record"
)

// batchOf makes a batch of records with these values.
func batchOf(values ...string) []byte { return build(record.BuilderOptions{}, values) }

// idempotentBatch makes a batch of a producer.
func idempotentBatch(id int64, epoch int16, sequence int32, values ...string) []byte {
	return build(record.BuilderOptions{Producer: &record.Producer{ID: id, Epoch: epoch, Sequence: sequence}}, values)
}

func build(o record.BuilderOptions, values []string) []byte {
	var b record.Builder
	b.Reset(o)
	for _, v := range values {
		b.Append(time.Now().UnixMilli(), nil, []byte(v), nil)
	}
	batch, err := b.Batch()
	if err != nil {
		panic(err)
	}
	return append([]byte(nil), batch...)
}

func produceRequest(version, acks int16, topic string, partition int32, records []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = version, acks, 5000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, records
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

// produce writes a batch with acks=all and returns its base offset.
func produce(t *testing.T, b *broker.Broker, topic string, partition int32, records []byte) int64 {
	t.Helper()
	p := call(t, b, produceRequest(9, -1, topic, partition, records)).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	if p.ErrorCode != 0 {
		t.Fatalf("produce to %s-%d: error %d", topic, partition, p.ErrorCode)
	}
	return p.BaseOffset
}
