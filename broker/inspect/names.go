package inspect

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/millrace/millrace/broker/internal/logdir"
)

// Suffixes of the files in a partition's folder: see package logdir. The digits before them are an offset.
const (
	logSuffix      = logdir.Log
	indexSuffix    = logdir.Index
	timeSuffix     = logdir.TimeIndex
	txnSuffix      = logdir.TxnIndex
	sumSuffix      = logdir.TxnSum // ours alone
	snapshotSuffix = logdir.Snapshot
	quorumSuffix   = ".checkpoint" // a snapshot of Kafka's metadata log: batches, as in a log file
	swapSuffix     = logdir.Swap

	epochsName   = logdir.Epochs
	metadataName = logdir.Metadata
	progressName = logdir.Progress // ours; Kafka has one of that name for all partitions
	quorumName   = "quorum-state"
)

// Names of the topics that brokers write themselves.
const (
	offsetsTopic  = "__consumer_offsets"
	txnTopic      = "__transaction_state"
	metadataTopic = "__cluster_metadata"
	shareTopic    = "__share_group_state"
)

func fileName(offset int64, suffix string) string { return fmt.Sprintf("%020d%s", offset, suffix) }

// parseName takes the name of a segment's file apart; ok is false for any other name.
func parseName(name string) (offset int64, suffix string, ok bool) {
	suffix = filepath.Ext(name)
	digits := strings.TrimSuffix(name, suffix)
	if suffix == quorumSuffix { // <end offset>-<epoch>.checkpoint
		digits, _, _ = strings.Cut(digits, "-")
	}
	if len(digits) != 20 {
		return 0, "", false
	}
	offset, err := strconv.ParseInt(digits, 10, 64)
	return offset, suffix, err == nil && offset >= 0
}

// parseFolder takes the name of a partition's folder apart: topic, dash, number.
func parseFolder(name string) (topic string, index int32, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(name[i+1:], 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != name[i+1:] {
		return "", 0, false
	}
	return name[:i], int32(n), true
}

// aside is the name of a folder that a broker, ours or Kafka's, moved out of the way: <topic>-<number>.<anything>-stray and so on.
var aside = regexp.MustCompile(`^(.+-[0-9]+)\.?[^.]*-(stray|delete|future)$`)

// parseAside takes the name of a folder that was moved out of the way apart.
func parseAside(name string) (topic string, index int32, ok bool) {
	m := aside.FindStringSubmatch(name)
	if m == nil {
		return "", 0, false
	}
	return parseFolder(m[1])
}
