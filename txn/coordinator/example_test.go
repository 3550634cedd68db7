package coordinator_test

import (
	"fmt"

	"github.com/millrace/millrace/txn/coordinator"
)

// The owner of a machine appends what a handler returns, replays it, and carries the
// decisions out. Here the log is a slice and every partition takes its marker at once.
func ExampleMachine() {
	var log []coordinator.Record
	nextID := int64(0)
	m, err := coordinator.New(coordinator.Options{ProducerIDs: func() (int64, error) { nextID++; return nextID, nil }})
	if err != nil {
		fmt.Println(err)
		return
	}
	nowMs := int64(1000)
	var do func(coordinator.Output)
	do = func(out coordinator.Output) {
		for _, r := range out.Records {
			log = append(log, r)
			if err := m.Replay(r.Key, r.Value); err != nil {
				fmt.Println(err)
				return
			}
		}
		for _, r := range out.Replies {
			fmt.Printf("answer %+v\n", r.Response)
		}
		for _, d := range out.Decisions {
			fmt.Printf("markers of epoch %d on %v, commit: %t\n", d.Epoch, d.Partitions, d.Commit)
			fmt.Printf("answer %+v\n", d.Reply.Response)
			do(m.Completed(nowMs, d))
		}
	}
	do(m.InitProducerID(nowMs, 1, coordinator.InitRequest{ID: "orders", ProducerID: -1, Epoch: -1, TimeoutMs: 60_000, Version: 5}))
	do(m.AddPartitions(nowMs, 2, coordinator.AddRequest{
		ID: "orders", ProducerID: 1, Epoch: 0, Implicit: true, Version: 5,
		Partitions: []coordinator.TopicPartition{{Topic: "paid", Partition: 3}},
	}))
	do(m.EndTxn(nowMs, 3, coordinator.EndRequest{ID: "orders", ProducerID: 1, Epoch: 0, Commit: true, Version: 5}))
	fmt.Print(m.Dump())
	fmt.Println(len(log), "records")
	// Output:
	// answer {Code:0 ProducerID:1 Epoch:0 OngoingProducerID:-1 OngoingEpoch:-1}
	// answer {Codes:[0]}
	// markers of epoch 1 on [{paid 3}], commit: true
	// answer {Code:0 ProducerID:1 Epoch:1}
	// orders: CompleteCommit pid=1 epoch=1 last=0 client=v2 timeout=60000 start=1000 update=1000
	// 4 records
}
