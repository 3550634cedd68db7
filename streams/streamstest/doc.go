// Package streamstest runs an application in a test, without a broker: records
// are piped in, results read out, time moves when told to.
//
// What runs is the production topology: the same tasks, stores, changelogs and
// repartition topics, on as many partitions as wanted, driven on the test's own
// goroutine. A record goes through the tasks to the end of the topology, with
// a commit after each hop, unless [ManualCommit] leaves the commits to the test.
// Results are seen as a consumer with isolation level read_committed sees them.
//
//	d := streamstest.New(t, app, streamstest.Partitions(3))
//	lines, counts := d.In[string, string]("lines"), d.Out[string, int64]("counts")
//	lines.At(t0, "", "a b a")
//	d.Crash()
//	got := counts.Records()
//
// [Driver.Crash] is a SIGKILL of every worker: what is not committed is gone,
// stores are rebuilt from their changelogs, and uncommitted records are
// processed again. It also checks that each store equals the fold of its
// committed changelog. [EveryCrash] replays a job with a crash at every step.
package streamstest
