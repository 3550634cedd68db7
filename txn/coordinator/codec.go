package coordinator

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The log of an id is a sequence of values under its key, in Kafka's formats
// TransactionLogKey and TransactionLogValue. Values are written in version 1,
// read in 0 and 1. Three facts that Kafka forgets at a restart, or never has, ride along in tagged
// fields that its readers skip. They are written only where they differ from what
// the other fields tell, so the records of an ordinary life are byte for byte
// those of Kafka.
const (
	keyVersion   = 0
	valueVersion = 1

	// tagLastEpoch holds metadata.lastEpoch, an int16.
	tagLastEpoch = 1000
	// tagCause holds metadata.cause, an int8.
	tagCause = 1001
	// tagNextTimeout holds metadata.nextTimeoutMs, an int32.
	tagNextTimeout = 1002
)

func encodeKey(id string) []byte {
	k := kmsg.TxnMetadataKey{Version: keyVersion, TransactionalID: id}
	return k.AppendTo(nil)
}

// decodeKey returns the id. ok is false for a key of another type, which a reader
// passes over as Kafka does.
func decodeKey(b []byte) (id string, ok bool, err error) {
	if len(b) >= 2 && binary.BigEndian.Uint16(b) != keyVersion {
		return "", false, nil
	}
	var k kmsg.TxnMetadataKey
	if err := k.ReadFrom(b); err != nil {
		return "", false, fmt.Errorf("transaction log key of %d bytes: %w", len(b), err)
	}
	return k.TransactionalID, true, nil
}

func encodeValue(md metadata) []byte {
	v := kmsg.NewTxnMetadataValue()
	v.Version = valueVersion
	v.ProducerID, v.ProducerEpoch = md.producerID, md.epoch
	v.PreviousProducerID, v.NextProducerID, v.NextProducerEpoch = md.previousID, md.nextID, md.nextEpoch
	v.TimeoutMillis = md.timeoutMs
	v.State = kmsg.TransactionState(md.state)
	if md.state == Kept {
		v.State = kmsg.TransactionState(Ongoing)
	}
	v.LastUpdateTimestamp, v.StartTimestamp = md.updateMs, md.startMs
	v.ClientTransactionVersion = md.clientVersion
	if md.partitions != nil {
		v.Topics = []kmsg.TxnMetadataValueTopic{}
	}
	for _, tp := range md.partitions {
		if n := len(v.Topics); n == 0 || v.Topics[n-1].Topic != tp.Topic {
			t := kmsg.NewTxnMetadataValueTopic()
			t.Topic = tp.Topic
			v.Topics = append(v.Topics, t)
		}
		t := &v.Topics[len(v.Topics)-1]
		t.Partitions = append(t.Partitions, tp.Partition)
	}
	if md.lastEpoch != impliedLastEpoch(md) {
		v.UnknownTags.Set(tagLastEpoch, binary.BigEndian.AppendUint16(nil, uint16(md.lastEpoch)))
	}
	if md.cause != ByClient {
		v.UnknownTags.Set(tagCause, []byte{byte(md.cause)})
	}
	if md.nextTimeoutMs != none {
		v.UnknownTags.Set(tagNextTimeout, binary.BigEndian.AppendUint32(nil, uint32(md.nextTimeoutMs)))
	}
	return v.AppendTo(nil)
}

// logged is the record that puts md in place for an id.
func logged(id string, md metadata) Record {
	return Record{Key: encodeKey(id), Value: encodeValue(md)}
}

// impliedLastEpoch is what a value without our own tag says about lastEpoch: under
// transaction version 2 a decision and its completion carry the epoch that the
// owner hears of in the answer.
func impliedLastEpoch(md metadata) int16 {
	switch {
	case md.clientVersion < 2 || !(md.state.deciding() || md.state.complete()):
		return none
	case md.previousID != md.producerID:
		return maxDataEpoch
	default:
		return md.epoch - 1
	}
}

func decodeValue(b []byte) (metadata, error) {
	var v kmsg.TxnMetadataValue
	if len(b) >= 2 {
		if version := int16(binary.BigEndian.Uint16(b)); version < 0 || version > valueVersion {
			return metadata{}, fmt.Errorf("transaction log value of version %d, known are 0 to %d", version, valueVersion)
		}
	}
	if err := v.ReadFrom(b); err != nil {
		return metadata{}, fmt.Errorf("transaction log value of %d bytes: %w", len(b), err)
	}
	md := metadata{
		producerID: v.ProducerID, epoch: v.ProducerEpoch,
		previousID: v.PreviousProducerID, nextID: v.NextProducerID, nextEpoch: v.NextProducerEpoch,
		timeoutMs: v.TimeoutMillis, state: State(v.State),
		startMs: v.StartTimestamp, updateMs: v.LastUpdateTimestamp, nextTimeoutMs: none,
		clientVersion: v.ClientTransactionVersion,
	}
	if md.previousID == none { // version 0 does not have it
		md.previousID = md.producerID
	}
	if md.state < Empty || md.state > Dead {
		return metadata{}, fmt.Errorf("transaction log value with state %d, known are %d to %d", v.State, Empty, Dead)
	}
	if md.state == Ongoing && md.nextEpoch != none {
		md.state = Kept
		if md.nextID == none {
			return metadata{}, fmt.Errorf("transaction log value with next epoch %d and no next producer id", md.nextEpoch)
		}
	}
	if v.Topics != nil {
		md.partitions = []TopicPartition{}
	}
	for _, t := range v.Topics {
		for _, p := range t.Partitions {
			md.partitions = append(md.partitions, TopicPartition{t.Topic, p})
		}
	}
	slices.SortFunc(md.partitions, comparePartitions)
	md.lastEpoch = impliedLastEpoch(md)
	v.UnknownTags.Each(func(tag uint32, val []byte) {
		switch {
		case tag == tagLastEpoch && len(val) == 2:
			md.lastEpoch = int16(binary.BigEndian.Uint16(val))
		case tag == tagCause && len(val) == 1:
			md.cause = Cause(val[0])
		case tag == tagNextTimeout && len(val) == 4:
			md.nextTimeoutMs = int32(binary.BigEndian.Uint32(val))
		}
	})
	return md, nil
}
