package onsarama

import (
	"errors"
	"fmt"

	"github.com/IBM/sarama"

	"github.com/millrace/millrace/txn/session"
)

// groupFencing lists the codes that mean that the group has moved on.
var groupFencing = []sarama.KError{sarama.ErrFencedInstancedId, sarama.ErrUnknownMemberId, sarama.ErrIllegalGeneration}

// fencing lists the codes that mean that another producer has the transactional id.
var fencing = []sarama.KError{sarama.ErrInvalidProducerEpoch, sarama.ErrTransactionCoordinatorFenced, sarama.ErrProducerFenced}

// definite lists the codes after which the transaction is surely not committed.
var definite = []sarama.KError{
	sarama.ErrInvalidTxnState, sarama.ErrOperationNotAttempted, sarama.ErrInvalidProducerIDMapping, sarama.ErrUnknownProducerID,
	sarama.ErrTransactionalIDAuthorizationFailed, sarama.ErrGroupAuthorizationFailed,
	sarama.ErrOffsetMetadataTooLarge,
}

// refusals lists the answers that time does not change.
var refusals = []sarama.KError{
	sarama.ErrMessageSizeTooLarge, sarama.ErrMessageSetSizeTooLarge, sarama.ErrOffsetMetadataTooLarge, sarama.ErrInvalidTimestamp, sarama.ErrInvalidRecord,
	sarama.ErrPolicyViolation, sarama.ErrInvalidTopic, sarama.ErrInvalidGroupId, sarama.ErrTopicAuthorizationFailed,
	sarama.ErrGroupAuthorizationFailed, sarama.ErrClusterAuthorizationFailed, sarama.ErrTransactionalIDAuthorizationFailed,
}

// aborted makes the error of a transaction that surely is not committed.
func aborted(step string, err error) error {
	if isAny(err, refusals) {
		return fmt.Errorf("%w, %w: %s: %w", session.ErrAborted, session.ErrRefused, step, err)
	}
	return fmt.Errorf("%w: %s: %w", session.ErrAborted, step, err)
}

func isAny(err error, of []sarama.KError) bool {
	for _, code := range of {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
