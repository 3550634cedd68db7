package record_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/millrace/millrace/core/record"
)

// A producer's side: build a batch. A broker's side: check it and give it its place in the log. A consumer's side: read it.
func Example() {
	var w record.Builder
	w.Reset(record.BuilderOptions{Codec: record.Zstd, Producer: &record.Producer{ID: 7, Epoch: 0, Sequence: 40}})
	w.Append(1_700_000_000_000, []byte("LAX"), []byte("late"), nil)
	w.Append(1_700_000_000_500, []byte("SFO"), nil, []record.Header{{Key: []byte("source"), Value: []byte("tower")}})
	sent, err := w.Batch()
	if err != nil {
		log.Fatal(err)
	}

	b, err := record.Single(sent)
	if err != nil {
		log.Fatal(err)
	}
	info, err := b.Validate(record.Rules{MaxBytes: 1 << 20, CompactedTopic: true}, nil)
	if err != nil {
		log.Fatal(err)
	}
	b.SetBaseOffset(1000)
	b.SetLeaderEpoch(3)
	fmt.Println(info.Count, "records, offsets", b.BaseOffset(), "to", b.LastOffset(), "sequences", b.BaseSequence(), "to", b.LastSequence())

	for r, err := range b.Records(nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%d %s=%s null: %v headers: %d\n", r.Offset, r.Key, r.Value, r.Value == nil, len(r.Headers))
	}
	// Output:
	// 2 records, offsets 1000 to 1001 sequences 40 to 41
	// 1000 LAX=late null: false headers: 0
	// 1001 SFO= null: true headers: 1
}

// A refusal says what, where and how much, and carries the code for the protocol.
func ExampleBatch_Validate() {
	var w record.Builder
	w.Append(1_700_000_000_000, nil, []byte("no key"), nil)
	b, err := w.Batch()
	if err != nil {
		log.Fatal(err)
	}
	_, err = b.Validate(record.Rules{CompactedTopic: true}, nil)
	var refused *record.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Code, refused)
	}
	// Output:
	// 87 record: one or more records of the batch are invalid (1 of its records; record 0: it has no key, which a compacted topic needs)
}

// One Scratch serves batch after batch and makes reading free of allocation.
func ExampleBatch_Reader() {
	var w record.Builder
	w.Reset(record.BuilderOptions{Codec: record.LZ4, BaseOffset: 10})
	w.Append(5, []byte("k"), []byte("v"), nil)
	b, err := w.Batch()
	if err != nil {
		log.Fatal(err)
	}
	var scratch record.Scratch
	r, err := b.Reader(&scratch)
	if err != nil {
		log.Fatal(err)
	}
	for r.Next() {
		fmt.Printf("%d: %s = %s\n", r.Record().Offset, r.Record().Key, r.Record().Value)
	}
	if r.Err() != nil {
		log.Fatal(r.Err())
	}
	// Output: 10: k = v
}
