package vfs

import (
	"errors"
	"io/fs"
	"slices"
)

// NoRoom tells whether an operation failed because something is full that may have
// room again without anybody's doing: the disk, a quota, the table of open files. A
// failed sync is never told of as that: what it should have made durable is lost, and
// trying again does not bring it back.
func NoRoom(err error) bool {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		switch p.Op {
		case "sync", "fdatasync", OpSyncDir.String():
			return false
		}
	}
	return slices.ContainsFunc(fullErrors, func(full error) bool { return errors.Is(err, full) })
}
