package session

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

var (
	// ErrFenced reports that somebody else has taken over: a producer with the
	// same transactional id, a member with the same instance id, or a newer
	// generation of the group. Nothing of the open transaction will be seen.
	// When it comes from the very last step of a commit, a commit that was
	// repeated after a lost reply may have succeeded before; the committed
	// offsets of the group tell.
	ErrFenced = errors.New("session: fenced")

	// ErrAborted reports that the transaction was aborted, wholly. The records
	// will be delivered again; the caller may go on at once.
	ErrAborted = errors.New("session: transaction aborted")

	// ErrRefused comes together with ErrAborted when the cluster will refuse the
	// same thing again, however often it is tried: a record that is too large, a
	// topic that may not be written, metadata that is too long.
	ErrRefused = errors.New("session: refused for good")

	// ErrUnknownOutcome reports that the commit was asked for and no answer
	// came. After Renew the outcome is settled, and the committed offsets of
	// the group tell which it was.
	ErrUnknownOutcome = errors.New("session: commit outcome unknown")

	// ErrClosed reports the use of something closed.
	ErrClosed = errors.New("session: closed")
)

// groupFencing lists the codes that mean that the group has moved on. The
// producer itself is still the holder of its transactional id.
var groupFencing = []error{kerr.FencedInstanceID, kerr.UnknownMemberID, kerr.IllegalGeneration}

// fencing lists all codes that mean that another owner exists.
var fencing = append([]error{
	kerr.ProducerFenced, kerr.InvalidProducerEpoch, kerr.TransactionCoordinatorFenced,
}, groupFencing...)

// definite lists the answers to EndTxn after which the transaction is surely
// not committed, other than the fencing ones.
var definite = []error{
	kerr.TransactionAbortable, kerr.InvalidTxnState, kerr.OperationNotAttempted,
	kerr.InvalidProducerIDMapping, kerr.UnknownProducerID,
	kerr.TransactionalIDAuthorizationFailed, kerr.GroupAuthorizationFailed,
}

// refusals lists the answers that time does not change.
var refusals = []error{
	kerr.MessageTooLarge, kerr.RecordListTooLarge, kerr.OffsetMetadataTooLarge, kerr.InvalidTimestamp, kerr.InvalidRecord,
	kerr.PolicyViolation, kerr.InvalidTopicException, kerr.InvalidGroupID, kerr.InvalidTransactionTimeout,
	kerr.UnsupportedVersion, kerr.UnsupportedForMessageFormat, kerr.UnsupportedCompressionType,
	kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed,
	kerr.TransactionalIDAuthorizationFailed,
}

// aborted makes the error of a transaction that surely is not committed.
func aborted(step string, err error) error {
	if isAny(err, refusals) {
		return fmt.Errorf("%w, %w: %s: %w", ErrAborted, ErrRefused, step, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrAborted, step, err)
}

func isAny(err error, of []error) bool {
	for _, e := range of {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// before types an error that came before the commit was asked for: the
// transaction cannot have been committed.
func before(step string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrFenced), errors.Is(err, ErrAborted):
		return err
	case isAny(err, fencing):
		return fmt.Errorf("%w: %s: %w", ErrFenced, step, err)
	}
	return aborted(step, err)
}

// ending types the error of the request that asks for the commit.
func ending(err error) error {
	switch {
	case err == nil:
		return nil
	case isAny(err, fencing):
		return fmt.Errorf("%w: end transaction: %w", ErrFenced, err)
	case isAny(err, definite):
		return aborted("end transaction", err)
	}
	return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}

// repeatable reports a code after which the same request may be sent again.
// Kafka's list lacks the one that only means that the previous transaction of
// this producer is not quite over.
func repeatable(err *kerr.Error) bool {
	return err.Retriable || err.Code == kerr.ConcurrentTransactions.Code
}
