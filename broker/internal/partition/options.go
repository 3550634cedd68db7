package partition

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/vfs"
)

// Options say which partition to open.
type Options struct {
	FS      vfs.FS
	Dir     string // the partition's own folder; made when missing
	Topic   string
	TopicID [16]byte
	Index   int32
	// LeaderEpoch is the epoch under which this broker leads the partition; appended batches carry it.
	LeaderEpoch int32
	Log         commitlog.Config
	Flusher     *flush.Flusher   // shared by all partitions of the broker
	Files       *commitlog.Files // too; nil keeps files open that are not used
	Clock       clock.Clock      // nil is the system's
	Logger      *slog.Logger     // nil discards
	// Durable says that FS outlives the process. If not, Close saves nothing for a next Open: no checkpoint, no index files. What
	// an acknowledgement waits for is the same.
	Durable bool
}

// Validate names the field that is missing or out of its limits.
func (o Options) Validate() error {
	switch {
	case o.FS == nil:
		return errors.New("partition: FS is nil")
	case o.Dir == "":
		return errors.New("partition: Dir is empty")
	case o.Topic == "":
		return errors.New("partition: Topic is empty")
	case o.Index < 0:
		return fmt.Errorf("partition: Index of %s is %d, must not be negative", o.Topic, o.Index)
	case o.LeaderEpoch < 0:
		return fmt.Errorf("partition: LeaderEpoch of %s-%d is %d, must not be negative", o.Topic, o.Index, o.LeaderEpoch)
	case o.Flusher == nil:
		return errors.New("partition: Flusher is nil")
	}
	return o.Log.Validate()
}

// Origin says who appends.
type Origin int8

const (
	// OriginClient is a Produce request.
	OriginClient Origin = iota
	// OriginCoordinator is one of the broker's own coordinators: its batches are trusted to be what a client may not send.
	OriginCoordinator
)

// AppendOptions say where a batch comes from.
type AppendOptions struct {
	Origin         Origin
	RequestVersion int16 // of the Produce request
	// Guard comes from BeginVerify, for a transactional batch whose producer has no open transaction here yet. The zero
	// Guard verifies nothing.
	Guard Guard
}

// Guard is the proof that the transaction coordinator was asked, on behalf of one producer and epoch, after everything
// that had ended an earlier transaction here.
type Guard struct{ id uint64 }

// Appended is where a batch went.
type Appended struct {
	BaseOffset, LastOffset int64
	LogAppendTimeMs        int64 // -1 when the records keep their own time
	LogStartOffset         int64
	Duplicate              bool // the batch was there already, at these offsets
}

// Marks are the partition's watermarks. LogStart <= LastStable <= HighWatermark <= LogEnd always holds, and HighWatermark
// is never above what is as durable as the topic wants it: synced, or in a relaxed mode written.
type Marks struct {
	LogStart, LastStable, HighWatermark, LogEnd int64
	LeaderEpoch                                 int32
}

// ReadOptions of a fetch.
type ReadOptions struct {
	Offset     int64
	MaxBytes   int32
	Committed  bool // read_committed: stop at the last stable offset and list aborted transactions
	AtLeastOne bool // give the first batch even when it is larger than MaxBytes
}

// Section is a piece of a log file, whole batches, ready for sendfile.
type Section = commitlog.Section
