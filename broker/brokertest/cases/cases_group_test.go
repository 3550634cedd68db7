package cases

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var groupCases = []testCase{
	{"G03", "KAFKA-2000, KAFKA-16168", speak, offsetsGoWithTheTopic},
	{"G03R", "KAFKA-2000, KAFKA-16168", restart, offsetsGoWithTheTopicOverRestart},
	{"G24", "nisshi", speak, offsetMetadata},
	{"G28", "redpanda#31483, KAFKA-5247, KAFKA-14505", speak, both(plainCommitRacesTransactional)},
	{"G28R", "redpanda#31483, KAFKA-5247, KAFKA-14505", restart, both(plainCommitRacesTransactionalOverRestart)},
}

func commitRequest(group, topic string, partition int32, offset int64, metadata *string) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version = 7
	req.Group, req.Generation = group, -1
	rt := kmsg.NewOffsetCommitRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewOffsetCommitRequestTopicPartition()
	rp.Partition, rp.Offset, rp.LeaderEpoch, rp.Metadata = partition, offset, -1, metadata
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

func (tg *target) commitOffset(group, topic string, offset int64, metadata *string) {
	tg.Helper()
	w := tg.coordinator(0, group)
	tg.eventually("OffsetCommit", func() (bool, string) {
		c := w.do(commitRequest(group, topic, 0, offset, metadata)).(*kmsg.OffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
		if c != 0 && !retriable(c) {
			tg.Fatalf("OffsetCommit: %s", code(c))
		}
		return c == 0, code(c)
	})
}

// committed asks OffsetFetch with RequireStable for one partition.
func (tg *target) committed(group, topic string, partition int32) kmsg.OffsetFetchResponseGroupTopicPartition {
	tg.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = 8
	req.RequireStable = true
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	rt := kmsg.NewOffsetFetchRequestGroupTopic()
	rt.Topic, rt.Partitions = topic, []int32{partition}
	rg.Topics = append(rg.Topics, rt)
	req.Groups = append(req.Groups, rg)
	w := tg.coordinator(0, group)
	var row kmsg.OffsetFetchResponseGroupTopicPartition
	tg.eventually("OffsetFetch", func() (bool, string) {
		g := w.do(req).(*kmsg.OffsetFetchResponse).Groups[0]
		if g.ErrorCode != 0 {
			return false, code(g.ErrorCode)
		}
		row = g.Topics[0].Partitions[0]
		return row.ErrorCode != kerr.UnstableOffsetCommit.Code, code(row.ErrorCode)
	})
	return row
}

func offsetsGone(tg *target, between func()) {
	topic, group := tg.topic("t", 1), tg.name("g")
	tg.commitOffset(group, topic, 7, nil)
	if p := tg.committed(group, topic, 0); p.Offset != 7 {
		tg.Fatalf("committed 7, fetched %d", p.Offset)
	}
	tg.deleteTopic(topic)
	gone := func(when string) {
		tg.eventually("offset "+when, func() (bool, string) {
			p := tg.committed(group, topic, 0)
			return p.Offset == -1, "still committed"
		})
	}
	gone("after the topic is deleted")
	between()
	gone("after that, and a restart where there is one")
	tg.topic("t", 1)
	gone("of a new topic under the old name")
}

func offsetsGoWithTheTopic(tg *target) { offsetsGone(tg, func() {}) }
func offsetsGoWithTheTopicOverRestart(tg *target) {
	offsetsGone(tg, func() { tg.hangUp(); tg.own.Restart(tg) })
}

func offsetMetadata(tg *target) {
	topic, group := tg.topic("t", 2), tg.name("g")
	m, fits, over := "m", strings.Repeat("x", 4096), strings.Repeat("x", 4097)
	for _, c := range []struct {
		in   *string
		want string
	}{{&m, "m"}, {nil, ""}, {&fits, fits}} {
		tg.commitOffset(group, topic, 1, c.in)
		p := tg.committed(group, topic, 0)
		got := "null"
		if p.Metadata != nil {
			got = *p.Metadata
		}
		if got != c.want {
			tg.Fatalf("metadata of %d characters came back as %d (%.10q)", len(c.want), len(got), got)
		}
	}
	req := commitRequest(group, topic, 0, 5, &over)
	ok := kmsg.NewOffsetCommitRequestTopicPartition()
	ok.Partition, ok.Offset, ok.LeaderEpoch, ok.Metadata = 1, 6, -1, &m
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, ok)
	rows := tg.coordinator(0, group).do(req).(*kmsg.OffsetCommitResponse).Topics[0].Partitions
	want(tg, "4097 characters", rows[0].ErrorCode, kerr.OffsetMetadataTooLarge)
	want(tg, "the partition beside it", rows[1].ErrorCode, nil)
	if a, b := tg.committed(group, topic, 0).Offset, tg.committed(group, topic, 1).Offset; a != 1 || b != 6 {
		tg.Fatalf("offsets %d and %d, want 1 (unchanged) and 6", a, b)
	}
}

// addOffsets says that the transaction will have offsets of a group, as version 1 must.
func (x *txn) addOffsets(group string) {
	x.tg.Helper()
	x.retry("AddOffsetsToTxn", func() int16 {
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.Version = 3
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = x.id, x.pid, x.epoch, group
		return x.coord.do(req).(*kmsg.AddOffsetsToTxnResponse).ErrorCode
	})
}

// plainWins stages 10 in a transaction, commits 20 outside of it, then commits the transaction. The rule, Kafka's own:
// the record with the higher log offset wins, so 20.
func plainWins(tg *target, version int, between func(x *txn)) {
	topic, group := tg.topic("t", 1), tg.name("g")
	x := tg.txn(version, "x").init()
	w := tg.coordinator(0, group)
	if version == 1 {
		x.addOffsets(group)
	}
	x.retry("TxnOffsetCommit", func() int16 {
		req := kmsg.NewPtrTxnOffsetCommitRequest()
		req.Version = 3
		if version == 2 {
			req.Version = 5
		}
		req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = x.id, group, x.pid, x.epoch
		req.Generation = -1
		rt := kmsg.NewTxnOffsetCommitRequestTopic()
		rt.Topic = topic
		rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		rp.Partition, rp.Offset, rp.LeaderEpoch = 0, 10, -1
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		return w.do(req).(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0].ErrorCode
	})
	tg.commitOffset(group, topic, 20, nil)
	x.commit()
	if p := tg.committed(group, topic, 0); p.Offset != 20 {
		tg.Fatalf("committed offset %d, want 20", p.Offset)
	}
	between(x)
	if p := tg.committed(group, topic, 0); p.Offset != 20 {
		tg.Fatalf("committed offset %d after the restart, 20 before", p.Offset)
	}
}

func plainCommitRacesTransactional(tg *target, version int) {
	plainWins(tg, version, func(*txn) {})
}

func plainCommitRacesTransactionalOverRestart(tg *target, version int) {
	plainWins(tg, version, func(*txn) { tg.hangUp(); tg.own.Restart(tg) })
}
