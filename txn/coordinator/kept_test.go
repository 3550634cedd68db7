package coordinator

import (
	"encoding/hex"
	"reflect"
	"testing"
)

// TestKeptAsKafkaWritesIt: a kept transaction, and the decision on it, in the bytes of TransactionLogValue version 1 as the class
// of Apache Kafka 4.4.0 writes them.
func TestKeptAsKafkaWritesIt(t *testing.T) {
	kept := metadata{
		producerID: 100, previousID: 100, nextID: 100, epoch: 5, lastEpoch: none, nextEpoch: 7,
		timeoutMs: NoTimeout, nextTimeoutMs: none, state: Kept, partitions: []TopicPartition{{"t", 0}, {"t", 3}},
		startMs: 1000, updateMs: 2000, clientVersion: 2,
	}
	decided := kept
	decided.state, decided.epoch, decided.previousID, decided.nextID, decided.nextEpoch, decided.lastEpoch = PrepareCommit, 32767, 101, 101, 1, maxDataEpoch
	for _, c := range []struct {
		md    metadata
		kafka string
	}{
		{kept, "0001000000000000006400057fffffff010202740300000000000000030000000000000007d000000000000003e80400080000000000000064010800000000000000640202000203020007"},
		{decided, "000100000000000000647fff7fffffff020202740300000000000000030000000000000007d000000000000003e80400080000000000000065010800000000000000650202000203020001"},
	} {
		got := encodeValue(c.md)
		if hex.EncodeToString(got) != c.kafka {
			t.Errorf("%v: %x, Kafka %s", c.md.state, got, c.kafka)
		}
		if md, err := decodeValue(got); err != nil || !reflect.DeepEqual(md, c.md) {
			t.Errorf("%v: read again %+v, %v", c.md.state, md, err)
		}
	}
	// What Kafka has no field for goes into a tag that it passes over.
	decided.lastEpoch, decided.nextTimeoutMs = 3, 700
	if md, err := decodeValue(encodeValue(decided)); err != nil || !reflect.DeepEqual(md, decided) {
		t.Errorf("with our tags: %+v, %v", md, err)
	}
	kept.nextID = none
	if _, err := decodeValue(encodeValue(kept)); err == nil {
		t.Error("a next epoch without a next producer id is taken")
	}
}
