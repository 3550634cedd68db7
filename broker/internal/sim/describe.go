package sim

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/core/record"
)

// describe is a request in a few words. It is made when the request is sent, for what is in it may change.
func describe(req kmsg.Request) string {
	head := fmt.Sprintf("%s v%d ", kmsg.NameForKey(req.Key()), req.GetVersion())
	switch r := req.(type) {
	case *kmsg.InitProducerIDRequest:
		if r.TransactionalID == nil {
			return head + "idempotent"
		}
		return head + fmt.Sprintf("%s, has %d/%d", *r.TransactionalID, r.ProducerID, r.ProducerEpoch)
	case *kmsg.AddPartitionsToTxnRequest:
		return head + fmt.Sprintf("%s %d/%d %v", r.TransactionalID, r.ProducerID, r.ProducerEpoch, len(r.Topics))
	case *kmsg.ProduceRequest:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				b := record.Batch(p.Records)
				head += fmt.Sprintf("%s-%d %d/%d sequence %d, %d records", t.Topic, p.Partition, b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), b.Count())
			}
		}
	case *kmsg.EndTxnRequest:
		return head + fmt.Sprintf("%s %d/%d commit %v", r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Commit)
	case *kmsg.TxnOffsetCommitRequest:
		out := head + fmt.Sprintf("%s %d/%d generation %d", r.TransactionalID, r.ProducerID, r.ProducerEpoch, r.Generation)
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				out += fmt.Sprintf(" %d:%d", p.Partition, p.Offset)
			}
		}
		return out
	case *kmsg.FetchRequest:
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				head += fmt.Sprintf("%s-%d@%d ", t.Topic, p.Partition, p.FetchOffset)
			}
		}
	case *kmsg.JoinGroupRequest:
		return head + r.MemberID
	case *kmsg.SyncGroupRequest:
		return head + fmt.Sprintf("%s generation %d", r.MemberID, r.Generation)
	case *kmsg.HeartbeatRequest:
		return head + fmt.Sprintf("%s generation %d", r.MemberID, r.Generation)
	}
	return head
}

// word names an error code.
func word(code int16) string {
	if code == 0 {
		return "NONE"
	}
	if e := kerr.TypedErrorForCode(code); e != nil {
		return e.Message
	}
	return fmt.Sprint(code)
}

// outcome is what a client makes of an answer.
type outcome int

const (
	good outcome = iota
	// again: nothing happened, and the same request may be sent again.
	again
	// unknown: perhaps it happened.
	unknown
	// abortable: the transaction must be aborted, then the producer may go on.
	abortable
	// fatal: the producer must begin anew.
	fatal
)

// judge sorts an error code as Kafka's clients do.
func judge(code int16) outcome {
	switch code {
	case 0:
		return good
	case kerr.CoordinatorLoadInProgress.Code, kerr.CoordinatorNotAvailable.Code, kerr.NotCoordinator.Code, kerr.ConcurrentTransactions.Code,
		kerr.NotLeaderForPartition.Code, kerr.UnknownTopicOrPartition.Code, kerr.UnstableOffsetCommit.Code,
		kerr.NotEnoughReplicas.Code:
		return again
	case kerr.KafkaStorageError.Code, kerr.NotEnoughReplicasAfterAppend.Code, kerr.RequestTimedOut.Code, kerr.UnknownServerError.Code:
		return unknown
	case kerr.TransactionAbortable.Code, kerr.UnknownMemberID.Code, kerr.IllegalGeneration.Code, kerr.RebalanceInProgress.Code:
		return abortable
	}
	return fatal
}
