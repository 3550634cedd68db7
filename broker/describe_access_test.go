package broker_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// Who may not describe a transactional id neither sees it in the list nor hears more of it.
func TestTransactionsThatMayNotBeDescribed(t *testing.T) {
	t.Parallel()
	b := brokertest.Start(t, brokertest.Configure(func(c *broker.Config) {
		c.Authorize = func(a broker.Access) bool { return a.Operation != "DESCRIBE" || a.Name != "secret" }
	}))
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	ask := func(req kmsg.Request) kmsg.Response {
		t.Helper()
		resp, err := cl.Broker(1).Request(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	for _, id := range []string{"open", "secret"} {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &id, 1000
		for code := int16(-1); code != 0; { // until the coordinator has loaded
			code = ask(req).(*kmsg.InitProducerIDResponse).ErrorCode
			if code != 0 && code != kerr.CoordinatorLoadInProgress.Code {
				t.Fatal(kerr.ErrorForCode(code))
			}
		}
	}
	list := ask(kmsg.NewPtrListTransactionsRequest()).(*kmsg.ListTransactionsResponse)
	if len(list.TransactionStates) != 1 || list.TransactionStates[0].TransactionalID != "open" {
		t.Errorf("listed: %+v", list.TransactionStates)
	}
	describe := kmsg.NewPtrDescribeTransactionsRequest()
	describe.TransactionalIDs = []string{"secret", "open"}
	rows := ask(describe).(*kmsg.DescribeTransactionsResponse).TransactionStates
	if rows[0].ErrorCode != kerr.TransactionalIDAuthorizationFailed.Code || rows[0].ProducerID != 0 || rows[0].State != "" {
		t.Errorf("the one that may not be described: %+v", rows[0])
	}
	if rows[1].ErrorCode != 0 || rows[1].State != "Empty" {
		t.Errorf("the other: %+v", rows[1])
	}
}
