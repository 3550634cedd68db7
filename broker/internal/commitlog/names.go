package commitlog

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Suffixes of the files of a segment; all files of one have its base offset in 20 digits before it. A snapshot has the offset
// up to which it knows the log.
const (
	logSuffix      = ".log"
	indexSuffix    = ".index"
	timeSuffix     = ".timeindex"
	txnSuffix      = ".txnindex"
	txnSumSuffix   = ".txnsum"
	snapshotSuffix = ".snapshot"

	deletedSuffix = ".deleted" // a file that is on its way out
	cleanedSuffix = ".cleaned" // compaction's output before it is complete
	swapSuffix    = ".swap"    // compaction's output on its way in
)

// allSuffixes are those of a segment's files, the log last: an index without a log is a sign of damage.
var allSuffixes = [...]string{indexSuffix, timeSuffix, txnSuffix, txnSumSuffix, logSuffix}

// DeletedDirSuffix ends the name of a partition folder that is being deleted: nobody opens it, and whoever starts the broker
// removes it.
const DeletedDirSuffix = "-delete"

func fileName(offset int64, suffix string) string { return fmt.Sprintf("%020d%s", offset, suffix) }

// parseName takes a file name apart; ok is false for a file that is none of a segment's.
func parseName(name string) (offset int64, suffix string, ok bool) {
	suffix = filepath.Ext(name)
	digits := strings.TrimSuffix(name, suffix)
	if len(digits) != 20 {
		return 0, "", false
	}
	offset, err := strconv.ParseInt(digits, 10, 64)
	return offset, suffix, err == nil && offset >= 0
}
