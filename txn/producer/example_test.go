package producer_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/millrace/millrace/txn/producer"
)

// Check, append, apply: a batch whose answer was lost on the way is sent again and recognised.
func Example() {
	var table producer.Table
	b := producer.Batch{ProducerID: 7, BaseSequence: 0, LastSequence: 9, TimestampMs: 1_700_000_000_000}
	if _, _, err := table.Check(b); err != nil {
		log.Fatal(err)
	}
	b.BaseOffset, b.LastOffset = 100, 109 // the log appends it here
	table.Apply(b)

	again := producer.Batch{ProducerID: 7, BaseSequence: 0, LastSequence: 9}
	dup, isDup, err := table.Check(again)
	fmt.Println(isDup, dup.BaseOffset, err)

	_, _, err = table.Check(producer.Batch{ProducerID: 7, BaseSequence: 20, LastSequence: 29})
	var refused *producer.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Code, refused)
	}
	// Output:
	// true 100 <nil>
	// 45 producer: id 7: sequence 20 under epoch 0, expected 10 after sequence 9 of epoch 0
}
