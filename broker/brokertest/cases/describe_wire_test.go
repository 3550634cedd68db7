package cases

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// producers asks DescribeProducers about one partition.
func (tg *target) producers(topic string, partition int32) []kmsg.DescribeProducersResponseTopicPartitionActiveProducer {
	tg.Helper()
	req := kmsg.NewPtrDescribeProducersRequest()
	rt := kmsg.NewDescribeProducersRequestTopic()
	rt.Topic, rt.Partitions = topic, []int32{partition}
	req.Topics = append(req.Topics, rt)
	p := tg.leader(topic, partition).do(req).(*kmsg.DescribeProducersResponse).Topics[0].Partitions[0]
	want(tg, "DescribeProducers of "+topic, p.ErrorCode, nil)
	return p.ActiveProducers
}

// open counts the producers with an open transaction on a partition.
func (tg *target) open(topic string, partition int32) int {
	tg.Helper()
	n := 0
	for _, p := range tg.producers(topic, partition) {
		if p.CurrentTxnStartOffset >= 0 {
			n++
		}
	}
	return n
}

func (tg *target) describe(id string) kmsg.DescribeTransactionsResponseTransactionState {
	tg.Helper()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{id}
	return tg.coordinator(1, id).do(req).(*kmsg.DescribeTransactionsResponse).TransactionStates[0]
}

// settled waits until the coordinator says that nothing of the id is under way, and returns that.
func (x *txn) settled() kmsg.DescribeTransactionsResponseTransactionState {
	x.tg.Helper()
	var d kmsg.DescribeTransactionsResponseTransactionState
	x.tg.eventually("completion of "+x.id, func() (bool, string) {
		d = x.tg.describe(x.id)
		return d.ErrorCode == 0 && d.State != "PrepareCommit" && d.State != "PrepareAbort", code(d.ErrorCode) + " " + d.State
	})
	return d
}

// list asks ListTransactions and keeps only the ids of this case.
func (tg *target) list(change func(*kmsg.ListTransactionsRequest)) (map[string]string, *kmsg.ListTransactionsResponse) {
	tg.Helper()
	req := kmsg.NewPtrListTransactionsRequest()
	req.Version = 2
	req.DurationFilterMillis = -1
	change(req)
	resp := tg.seed().do(req).(*kmsg.ListTransactionsResponse)
	mine := map[string]string{}
	for _, s := range resp.TransactionStates {
		if len(s.TransactionalID) > len(tg.prefix) && s.TransactionalID[:len(tg.prefix)] == tg.prefix {
			mine[s.TransactionalID[len(tg.prefix)+1:]] = s.TransactionState
		}
	}
	return mine, resp
}
