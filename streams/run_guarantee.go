package streams

import (
	"github.com/millrace/millrace/streams/internal/runtime"
	"github.com/millrace/millrace/txn/session"
)

// AtLeastOnce runs without transactions. A commit waits until all output is
// acknowledged, then writes the changelogs, then commits the offsets, and only then
// the stores accept what they were told. After a crash nothing is lost; what had been
// processed since the last commit is processed again, on top of what it has left in
// the changelogs, so records and counts may come double. Output is visible before the
// commit. Nothing stops a process that slept through its own replacement from writing
// once more.
//
// It is for clusters without transactions, and for output that must be seen before
// the next commit. Without this option a run is exactly once.
func AtLeastOnce() RunOpt { return guarantee(session.AtLeastOnce) }

// AtMostOnce runs without transactions. Output is held in memory; a commit commits the
// offsets, then sends output and changelogs. After a crash nothing comes double; what
// was about to be sent is lost. A process that the group has replaced sends nothing,
// as its offsets are refused first.
func AtMostOnce() RunOpt { return guarantee(session.AtMostOnce) }

func guarantee(m session.Mode) RunOpt { return func(o *runtime.Options) { o.Guarantee = m } }
