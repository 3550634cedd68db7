package commitlog

import "github.com/millrace/millrace/broker/internal/logdir"

// Names of the files of a segment, see package logdir.
const (
	logSuffix      = logdir.Log
	indexSuffix    = logdir.Index
	timeSuffix     = logdir.TimeIndex
	txnSuffix      = logdir.TxnIndex
	txnSumSuffix   = logdir.TxnSum
	snapshotSuffix = logdir.Snapshot

	deletedSuffix = logdir.Deleted
	cleanedSuffix = logdir.Cleaned
	swapSuffix    = logdir.Swap
)

// allSuffixes are those of a segment's files, the log last: an index without a log is a sign of damage.
var allSuffixes = [...]string{indexSuffix, timeSuffix, txnSuffix, txnSumSuffix, logSuffix}

// DeletedDirSuffix ends the name of a partition folder that is being deleted: nobody opens it, and whoever starts the broker
// removes it.
const DeletedDirSuffix = "-delete"

func fileName(offset int64, suffix string) string { return logdir.Name(offset, suffix) }

// parseName takes a file name apart; ok is false for a file that is none of a segment's.
func parseName(name string) (offset int64, suffix string, ok bool) { return logdir.Parse(name) }
