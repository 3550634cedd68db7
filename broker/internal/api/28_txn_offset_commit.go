package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/internal/coord"
	"github.com/millrace/millrace/broker/internal/group"
)

// TxnOffsetCommit: versions 0 to 6, from version 6 on by topic id.
//
// The offsets count when the transaction commits. Before they are written the
// transaction gets the group's partition: version 5 and above add it here (KIP-890),
// older clients have added it with AddOffsetsToTxn, which is verified. Version 3 and
// above say which member of the group commits (KIP-447).
//
//   - TRANSACTIONAL_ID_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED,
//     TOPIC_AUTHORIZATION_FAILED
//   - INVALID_GROUP_ID, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID
//   - INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING
//   - TRANSACTION_ABORTABLE, before version 4 INVALID_TXN_STATE: the group's partition
//     was not added
//   - TRANSACTION_ABORTABLE, before version 4 UNKNOWN_PRODUCER_ID: the transaction was
//     aborted by its timeout
//   - UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION
//   - OFFSET_METADATA_TOO_LARGE, INVALID_COMMIT_OFFSET_SIZE
//   - COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE
func handleTxnOffsetCommit(s *Server, c *Call, reply func(kmsg.Response)) {
	req := c.Req.(*kmsg.TxnOffsetCommitRequest)
	t := &txnOffsetCommit{
		s: s, req: req, resp: kmsg.NewPtrTxnOffsetCommitResponse(), reply: reply,
		commit: &group.Commit{
			Group: req.Group, Member: req.MemberID, Instance: req.InstanceID,
			Generation: req.Generation, Version: c.Version, RetentionMs: -1,
		},
	}
	t.rows(c, t.mayCommit(c))
	if len(t.waiting) == 0 {
		reply(t.resp)
		return
	}
	t.verify()
}

// txnOffsetCommit is one request on its way: topics resolved, transaction asked,
// offsets written.
type txnOffsetCommit struct {
	s       *Server
	req     *kmsg.TxnOffsetCommitRequest
	resp    *kmsg.TxnOffsetCommitResponse
	reply   func(kmsg.Response)
	commit  *group.Commit
	waiting []*kmsg.TxnOffsetCommitResponseTopicPartition
}

// mayCommit is the code for the whole request.
func (t *txnOffsetCommit) mayCommit(c *Call) int16 {
	switch {
	case !t.s.Authorize(c.Principal, kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTransactionalId, t.req.TransactionalID):
		return kerr.TransactionalIDAuthorizationFailed.Code
	case !t.s.mayReadGroup(c, t.req.Group):
		return kerr.GroupAuthorizationFailed.Code
	case t.req.Group == "":
		return kerr.InvalidGroupID.Code
	}
	return 0
}

// rows makes the rows of the answer and collects the offsets to commit.
func (t *txnOffsetCommit) rows(c *Call, refused int16) {
	im := t.s.Meta.Image()
	t.resp.Topics = make([]kmsg.TxnOffsetCommitResponseTopic, len(t.req.Topics))
	for i := range t.req.Topics {
		from, to := &t.req.Topics[i], &t.resp.Topics[i]
		to.Topic, to.TopicID = from.Topic, from.TopicID
		to.Partitions = make([]kmsg.TxnOffsetCommitResponseTopicPartition, len(from.Partitions))
		topic, code := t.s.commitTopic(c, im, from.Topic, from.TopicID, c.Version >= 6)
		if refused != 0 {
			code = refused
		}
		for k := range from.Partitions {
			p, row := &from.Partitions[k], &to.Partitions[k]
			row.Partition, row.ErrorCode = p.Partition, code
			switch {
			case code != 0:
			case p.Partition < 0 || int(p.Partition) >= len(topic.Partitions):
				row.ErrorCode = kerr.UnknownTopicOrPartition.Code
			default:
				o := group.Offset{Topic: topic.Name, TopicID: topic.ID, Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch}
				if p.Metadata != nil {
					o.Metadata = *p.Metadata
				}
				t.commit.Offsets = append(t.commit.Offsets, o)
				t.waiting = append(t.waiting, row)
			}
		}
	}
}

// verify asks the transaction coordinator. Before version 5 a transaction may end
// between its answer and the append without a new epoch; the group coordinator
// remembers that it was asked about, and refuses what comes behind the end.
func (t *txnOffsetCommit) verify() {
	verifyOnly := t.req.Version < 5
	if verifyOnly {
		t.s.Groups.ForKey(t.req.Group).Do(nil, func(m *group.Machine, nowMs int64, _ coord.Token) coord.Output {
			t.commit.Verified = m.BeginVerify(nowMs, t.req.ProducerID)
			return coord.Output{}
		})
		if t.commit.Verified == 0 {
			t.fail(kerr.CoordinatorLoadInProgress.Code)
			return
		}
	}
	parts := []coord.TopicPartition{t.s.Txns.GroupPartition(t.req.Group)}
	t.s.Txns.AddPartitions(t.req.TransactionalID, t.req.ProducerID, t.req.ProducerEpoch, parts, verifyOnly, func(codes []int16) {
		if codes[0] != 0 {
			t.fail(txnCommitCode(codes[0], t.req.Version))
			return
		}
		t.write()
	})
}

// txnCommitCode fits the transaction coordinator's code to what clients of
// TxnOffsetCommit know. COORDINATOR_NOT_AVAILABLE and NOT_COORDINATOR would make
// them look for another group coordinator, which is not the one that failed.
func txnCommitCode(code, version int16) int16 {
	switch code {
	case kerr.ConcurrentTransactions.Code, kerr.CoordinatorNotAvailable.Code, kerr.NotCoordinator.Code:
		return kerr.CoordinatorLoadInProgress.Code
	case kerr.TransactionAbortable.Code:
		if version < 4 {
			return kerr.InvalidTxnState.Code
		}
	case kerr.UnknownProducerID.Code:
		if version >= 4 {
			return kerr.TransactionAbortable.Code
		}
	}
	return code
}

func (t *txnOffsetCommit) write() {
	txn := coord.Txn{ProducerID: t.req.ProducerID, Epoch: t.req.ProducerEpoch}
	t.s.Groups.ForKey(t.req.Group).Do(func(r any) {
		if f, failed := r.(coord.Failure); failed {
			t.fail(commitFailure(f))
			return
		}
		for i, code := range r.(group.Codes) {
			t.waiting[i].ErrorCode = txnCommitCode(code, t.req.Version)
		}
		t.reply(t.resp)
	}, func(m *group.Machine, nowMs int64, to coord.Token) coord.Output {
		return m.TxnCommit(nowMs, to, txn, t.commit)
	})
}

// fail answers with one code for all offsets that wait.
func (t *txnOffsetCommit) fail(code int16) {
	for _, row := range t.waiting {
		row.ErrorCode = code
	}
	t.reply(t.resp)
}
