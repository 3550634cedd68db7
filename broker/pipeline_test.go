package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/record"
)

func transactionalBatch(id int64, epoch int16, sequence int32, values ...string) []byte {
	return build(record.BuilderOptions{
		Producer: &record.Producer{ID: id, Epoch: epoch, Sequence: sequence}, Transactional: true,
	}, values)
}

// A producer may send five batches without waiting. The first of a transaction
// makes the broker ask the transaction coordinator; the others must not overtake
// it, or their sequence numbers would be out of order.
func TestFirstBatchesOfATransactionKeepTheirOrder(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP(), brokertest.InFolder(t.TempDir()))
	createTopic(t, b, "t", 1)
	name := "x"
	init := kmsg.NewPtrInitProducerIDRequest()
	init.Version, init.TransactionalID, init.TransactionTimeoutMillis, init.ProducerID, init.ProducerEpoch = 5, &name, 60_000, -1, -1
	who := call(t, b, init).(*kmsg.InitProducerIDResponse)
	if who.ErrorCode != 0 {
		t.Fatalf("InitProducerId: error %d", who.ErrorCode)
	}
	id, epoch := who.ProducerID, who.ProducerEpoch
	const rounds, inFlight = 50, 5
	for round := range rounds {
		c := dialTCP(t, b)
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		var all []byte
		for i := range inFlight {
			req := produceRequest(12, -1, "t", 0, transactionalBatch(id, epoch, int32(i), "v"))
			req.TransactionID = &name
			all = append(all, format(req)...)
		}
		if _, err := c.Write(all); err != nil {
			t.Fatal(err)
		}
		for i := range inFlight {
			body, err := readAnswer(c)
			resp := kmsg.NewPtrProduceResponse()
			resp.Version = 12
			if err == nil {
				err = decodeAnswer(resp, body)
			}
			if err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
				t.Fatalf("round %d, batch %d: %+v, %v", round, i, resp.Topics, err)
			}
		}
		c.Close()
		end := kmsg.NewPtrEndTxnRequest()
		end.Version, end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = 5, name, id, epoch, true
		next := call(t, b, end).(*kmsg.EndTxnResponse)
		if next.ErrorCode != 0 {
			t.Fatalf("round %d: EndTxn: error %d", round, next.ErrorCode)
		}
		id, epoch = next.ProducerID, next.ProducerEpoch
	}
}

// A thousand requests at once on one connection are answered in their order, a
// fetch that waits a second among them, and other connections do not notice.
func TestPipelining(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP())
	createTopic(t, b, "t", 1)
	c := dialTCP(t, b)
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	const n = 1000
	wait := fetchRequest("t", 0, 0, 1000)
	wait.MaxWaitMillis, wait.MinBytes = 1000, 1<<20
	requests := []kmsg.Request{produceRequest(9, -1, "t", 0, batchOf("v")), kmsg.NewPtrMetadataRequest(), wait}
	var all []byte
	for i := range n {
		req := requests[i%2]
		if i == n/2 {
			req = wait
		}
		all = append(all, kmsg.NewRequestFormatter().AppendRequest(nil, req, int32(i))...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	written := make(chan error, 1)
	go func() {
		_, err := c.Write(all)
		written <- err
	}()
	other := 0 // requests of other connections while the fetch waits
	for i := range n {
		if i == n/2 {
			for ; other < 10; other++ {
				servedVersions(t, b)
			}
		}
		body, err := readAnswer(c)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if got := int(body[2])<<8 | int(body[3]); got != i {
			t.Fatalf("answer %d is to request %d", i, got)
		}
	}
	select {
	case err := <-written:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("the requests were never all read")
	}
}
