package api_test

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
)

// ask sends a request as it is.
func ask(t *testing.T, c *kgo.Client, req kmsg.Request) kmsg.Response {
	t.Helper()
	resp, err := c.SeedBrokers()[0].Request(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// TestAddPartitionsForBrokers is T55: version 4 and above has one result for every
// transaction and partition of the request, also when an id is there twice.
func TestAddPartitionsForBrokers(t *testing.T) {
	b := brokertest.Start(t)
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	create := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", 3, 1
	create.Topics, create.TimeoutMillis = append(create.Topics, topic), 10000
	ask(t, c, create)

	producers := map[string]*kmsg.InitProducerIDResponse{}
	for _, id := range []string{"a", "b"} {
		init := kmsg.NewPtrInitProducerIDRequest()
		init.TransactionalID, init.TransactionTimeoutMillis = &id, 60000
		for {
			r := ask(t, c, init).(*kmsg.InitProducerIDResponse)
			if r.ErrorCode == 0 {
				producers[id] = r
				break
			}
			if !kerr.IsRetriable(kerr.ErrorForCode(r.ErrorCode)) {
				t.Fatal(kerr.ErrorForCode(r.ErrorCode))
			}
		}
	}
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	add := func(id string, verify bool, name string, partitions ...int32) {
		tx := kmsg.NewAddPartitionsToTxnRequestTransaction()
		tx.TransactionalID, tx.ProducerID, tx.ProducerEpoch = id, producers[id].ProducerID, producers[id].ProducerEpoch
		tx.VerifyOnly = verify
		rt := kmsg.NewAddPartitionsToTxnRequestTransactionTopic()
		rt.Topic, rt.Partitions = name, partitions
		tx.Topics = append(tx.Topics, rt)
		req.Transactions = append(req.Transactions, tx)
	}
	add("a", false, "t", 0, 1)
	add("b", true, "t", 0)
	add("a", true, "t", 1, 2)
	add("b", false, "t", 2, 9)
	resp := ask(t, c, req).(*kmsg.AddPartitionsToTxnResponse)
	abortable, unknown, skipped := kerr.TransactionAbortable.Code, kerr.UnknownTopicOrPartition.Code, kerr.OperationNotAttempted.Code
	want := [][]int16{{0, 0}, {abortable}, {0, abortable}, {skipped, unknown}}
	if resp.ErrorCode != 0 || len(resp.Transactions) != len(want) {
		t.Fatalf("code %d, %d results", resp.ErrorCode, len(resp.Transactions))
	}
	for i, codes := range want {
		tx := resp.Transactions[i]
		if tx.TransactionalID != req.Transactions[i].TransactionalID || len(tx.Topics) != 1 || len(tx.Topics[0].Partitions) != len(codes) {
			t.Fatalf("result %d: %+v", i, tx)
		}
		for k, p := range tx.Topics[0].Partitions {
			if p.ErrorCode != codes[k] || p.Partition != req.Transactions[i].Topics[0].Partitions[k] {
				t.Errorf("result %d, partition %d: code %d, want %d", i, p.Partition, p.ErrorCode, codes[k])
			}
		}
	}
}
