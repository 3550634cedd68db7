// Package logdir knows the names of the files in a partition's folder, for the log that writes them (package commitlog) and
// for the independent reader (package inspect), so that neither meets a file that the other has never heard of. What stands in
// the files is not its business.
package logdir

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Suffixes of the files of a segment; all files of one have its base offset in 20 digits before it. A snapshot has the offset
// up to which it knows the log.
const (
	Log       = ".log"
	Index     = ".index"
	TimeIndex = ".timeindex"
	TxnIndex  = ".txnindex"
	TxnSum    = ".txnsum"
	Snapshot  = ".snapshot"

	Deleted = ".deleted" // a file that is on its way out
	Cleaned = ".cleaned" // compaction's output before it is complete
	Swap    = ".swap"    // compaction's output on its way in
	Temp    = ".tmp"     // a small file that was not written to its end
)

// Whole names.
const (
	Epochs   = "leader-epoch-checkpoint"
	Metadata = "partition.metadata"
	// Progress is Kafka's name, in the data folder, of a file that we have for each partition.
	Progress = "cleaner-offset-checkpoint"
)

// Kind is what is to be known of the files of one kind.
type Kind struct {
	// Name is the suffix, or the whole name.
	Name string
	// Sacred says that nothing else tells what the file says: it can not be made again.
	Sacred bool
	// Passing says that the file is half of something; the next opening finishes or removes it.
	Passing bool
	// What the file is, for messages.
	What string
}

// Kinds are all that a broker of ours writes into a partition's folder.
var Kinds = []Kind{
	{Name: Log, Sacred: true, What: "record batches"},
	{Name: Index, What: "places by offset"},
	{Name: TimeIndex, What: "offsets by time"},
	{Name: TxnIndex, What: "aborted transactions"},
	{Name: TxnSum, What: "checksum of the aborted transactions"},
	{Name: Snapshot, What: "producers as of an offset"},
	{Name: Epochs, What: "leader epochs"},
	{Name: Metadata, Sacred: true, What: "topic id"},
	{Name: Progress, What: "how far compaction has come"},
	{Name: Deleted, Passing: true, What: "a file of a deleted segment, which is removed after a while"},
	{Name: Cleaned, Passing: true, What: "the output of a compaction that was not completed; the next start removes it"},
	{Name: Swap, Passing: true, Sacred: true, What: "the output of a compaction that was not put in its place yet; the next start does it"},
	{Name: Temp, Passing: true, What: "a file that was not written to its end; the next start removes it"},
}

// KindOf tells of which kind a file is; ok is false for one that no broker of ours has written.
func KindOf(name string) (kind Kind, ok bool) {
	for _, k := range Kinds {
		if name == k.Name {
			return k, true
		}
	}
	suffix := filepath.Ext(name)
	for _, k := range Kinds {
		if suffix != k.Name {
			continue
		}
		stem := strings.TrimSuffix(name, suffix)
		switch _, _, segment := Parse(name); {
		case k.Name == Swap:
			_, _, ok = ParseSwap(name)
		case k.Passing:
			_, ok = KindOf(stem)
		default:
			ok = segment
		}
		return k, ok
	}
	return Kind{}, false
}

// Name is the name of a segment's file.
func Name(offset int64, suffix string) string { return fmt.Sprintf("%020d%s", offset, suffix) }

// Parse takes the name of a segment's file apart; ok is false for any other name.
func Parse(name string) (offset int64, suffix string, ok bool) {
	suffix = filepath.Ext(name)
	offset, ok = digits(strings.TrimSuffix(name, suffix))
	if !ok {
		return 0, "", false
	}
	return offset, suffix, true
}

// SwapName is the name of a compacted segment that stands for all offsets from base up to end.
func SwapName(base, end int64) string { return fmt.Sprintf("%020d-%020d%s", base, end, Swap) }

// ParseSwap takes such a name apart.
func ParseSwap(name string) (base, end int64, ok bool) {
	stem, swap := strings.CutSuffix(name, Swap)
	a, b, found := strings.Cut(stem, "-")
	base, ok1 := digits(a)
	end, ok2 := digits(b)
	if !swap || !found || !ok1 || !ok2 || base >= end {
		return 0, 0, false
	}
	return base, end, true
}

// digits reads exactly 20 of them.
func digits(s string) (n int64, ok bool) {
	if len(s) != 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0 && s[0] != '+'
}
