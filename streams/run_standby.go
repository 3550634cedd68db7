package streams

import (
	"github.com/millrace/millrace/streams/internal/runtime"
)

// Standbys keeps copies of each task's stores in n other processes beside the one
// that works on them. They follow the changelogs; when the process dies, one of them
// takes its tasks over with hardly anything left to restore. The copies lie in other
// racks where there are some; see Rack. Two workers of one process are one place. The
// default is 0. Give all processes the same number.
func Standbys(n int) RunOpt { return func(o *runtime.Options) { o.Standbys = n } }

// AcceptableLag is how many records a copy may lack to count as good as complete. A
// task moves to another process, one that was started anew for instance, only when its
// state there is as close as that; until then it stays where it is while the new
// process warms up. The default is 10,000.
func AcceptableLag(records int64) RunOpt {
	return func(o *runtime.Options) { o.AcceptableLag = records }
}

// WarmUps is how many tasks a worker may warm up for at a time. The default is 4.
func WarmUps(n int) RunOpt { return func(o *runtime.Options) { o.WarmUps = n } }

// Rack says where this process stands, in whatever terms: a room, a zone. Copies are
// kept in other racks than the tasks and each other, as far as there are enough.
func Rack(name string) RunOpt { return func(o *runtime.Options) { o.Rack = name } }

// Restored is how far the restore of a Store is, or a Copy of one: Records and Bytes
// that were read, how many offsets are Remaining, whether it is Done, and why it had
// to begin from nothing (Rebuilt).
type Restored = runtime.Restored

// OnRestore calls f about once a second for each store that is being restored, or of
// which a copy is kept, and when a restore is done. It is called on goroutines of
// their own while tasks go on, and must be quick.
func OnRestore(f func(Restored)) RunOpt { return func(o *runtime.Options) { o.OnRestore = f } }
