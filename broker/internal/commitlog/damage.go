package commitlog

import (
	"errors"
	"fmt"
)

// ErrDamaged is wrapped by every [DamageError].
var ErrDamaged = errors.New("the log is damaged")

// DamageError says that something which was durable, and may have been acknowledged, is not there any more or does not
// check. Nothing was changed on the disk.
type DamageError struct {
	Partition string // topic-partition
	File      string // name in the partition's folder
	Position  int64  // in bytes, -1 when there is none
	Offset    int64  // the first offset that is lost
	Durable   int64  // everything below this offset was durable
	Reason    string
}

func (e *DamageError) Error() string {
	at := ""
	if e.Position >= 0 {
		at = fmt.Sprintf(" at byte %d", e.Position)
	}
	return fmt.Sprintf("%s: %v: %s%s, offset %d: %s (all offsets below %d were durable; nothing was changed)",
		e.Partition, ErrDamaged, e.File, at, e.Offset, e.Reason, e.Durable)
}

// damaged is the damage that a reader met. Readers only go where everything is durable, so it says so of what stands before.
func (l *Log) damaged(segment, pos, offset int64, cause error) error {
	return &DamageError{
		Partition: l.o.Name, File: fileName(segment, logSuffix), Position: pos, Offset: offset, Durable: offset, Reason: cause.Error(),
	}
}

// Unwrap is [ErrDamaged].
func (e *DamageError) Unwrap() error { return ErrDamaged }
