package coordinator

// Kafka's error codes that a coordinator answers with.
const (
	CodeNone                         int16 = 0
	CodeCoordinatorLoading           int16 = 14
	CodeUnsupportedVersion           int16 = 35
	CodeInvalidRequest               int16 = 42
	CodeInvalidProducerEpoch         int16 = 47
	CodeInvalidTxnState              int16 = 48
	CodeInvalidProducerIDMap         int16 = 49
	CodeInvalidTxnTimeout            int16 = 50
	CodeConcurrentTransactions       int16 = 51
	CodeTransactionalIDAuthorization int16 = 53
	CodeUnknownProducerID            int16 = 59
	CodeProducerFenced               int16 = 90
	CodeTransactionAbortable         int16 = 120
)

// The first version of each request that knows PRODUCER_FENCED (KIP-588). Older
// ones are told INVALID_PRODUCER_EPOCH.
const (
	initKnowsFenced = 4
	addKnowsFenced  = 2
	endKnowsFenced  = 2
)

// endBumpsEpoch is the first version of EndTxn with the rules of transaction
// version 2 (KIP-890): the epoch rises with every end of a transaction.
const endBumpsEpoch = 5

// fenced is the code for a producer that a newer one replaced.
func fenced(version, knows int16) int16 {
	if version < knows {
		return CodeInvalidProducerEpoch
	}
	return CodeProducerFenced
}

// commitAfterTimeout is the answer to a commit that comes after the coordinator
// aborted the transaction because it took too long. The client is still the
// rightful owner of its id, so it must be able to abort and go on.
//
// Apache Kafka 4.4.0 answers INVALID_TXN_STATE, which is fatal to its clients
// (KAFKA-20785); INVALID_PRODUCER_EPOCH and PRODUCER_FENCED are fatal for EndTxn
// too. What remains:
//
//   - Version 5: TRANSACTION_ABORTABLE, which every client of transaction version
//     2 takes as "abort, then begin anew". franz-go then asks InitProducerId with
//     its old epoch, the Java client sends EndTxn(abort) with its old epoch; both
//     get the next epoch.
//   - Below: UNKNOWN_PRODUCER_ID, on which clients of version 1 abort and recover
//     through InitProducerId (KIP-360); TRANSACTION_ABORTABLE does not lead them
//     to a new epoch, and with the old one they would be fenced at the next step.
func commitAfterTimeout(version int16) int16 {
	if version >= endBumpsEpoch {
		return CodeTransactionAbortable
	}
	return CodeUnknownProducerID
}

// addAfterTimeout is the same decision for a client that goes on with a transaction
// after it was aborted by the timeout: it announces a partition, or its broker adds
// or verifies one on its behalf.
func addAfterTimeout(implicit bool) int16 {
	if implicit {
		return CodeTransactionAbortable
	}
	return CodeUnknownProducerID
}
