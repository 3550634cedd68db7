// Package crash takes the power away from a broker at every file operation of a
// short story, and looks at what is left.
//
// The story ([TestPowerCutAtEveryOperation] tells it) is one of everything: topics
// made, deleted and made again, idempotent and transactional producers of both
// versions of the protocol, offsets committed alone and inside transactions,
// records deleted. Each step notes when it was tried and when it was acknowledged.
// At each file operation the disk is cloned as a power cut would leave it
// (vfs.Mem.CrashClone), a broker is started on the clone, and the notes say what
// it must know, what it may know, and what it must not know:
//
//   - acknowledged is there once and in order;
//   - a committed transaction is whole, with its offsets; an aborted or unfinished
//     one is invisible; one whose end was asked for but not answered is one of both,
//     on all its partitions alike;
//   - a deleted topic is gone with its offsets, a new one of the same name is empty;
//   - the last stable offset reaches the end, and a producer's last batches are
//     recognised when they are sent again;
//   - everything serves.
//
// Starting is a story too: the power is cut again while the clone recovers.
//
// [TestCrashMatrix] does the same to random stories in which everything that
// changes a disk goes on at once: rolls, compaction, retention, deletions, group
// commits of many, restarts. It also compares look-ups with what a reader of
// everything sees, the coordinators with themselves after another start, and lets
// the independent reader (broker/inspect) find nothing wrong with the files. "make
// test-crash" runs it for minutes with new seeds.
//
// The same notes serve three more tests: random stories with failing disks
// ([TestStorms]), single wrong bits in every file ([TestFlippedBits]), and requests
// of past transactions that arrive once more ([TestLatePacketsHaveNoEffect]).
//
// Every test prints its seed, and MILLRACE_SEED repeats it. By default a share of
// the operations is tried; MILLRACE_SOAK=1 tries all of them.
package crash
