package flush

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/millrace/millrace/core/vfs"
)

// JournalName is the journal's file in the broker's data folder.
const JournalName = "recovery-journal"

// journalHead opens the file: a name and a version, which an older program refuses.
var journalHead = []byte("MILLJRNL\x00\x00\x00\x01")

// rewriteAt is the size at which the journal is written anew with only what still counts, unless that is not much less.
const rewriteAt = 4 << 20

// ErrNewerJournal says that the data folder was written by a later version of this program.
var ErrNewerJournal = errors.New("flush: the recovery journal has a newer format")

// journal is the file and the state it stands for. One mutex owns both; only an fsync runs outside of it.
type journal struct {
	fs     vfs.FS
	dir    string
	logger *slog.Logger

	mu    sync.Mutex
	moved sync.Cond // synced, broken or file changed
	state map[ID]Point
	clean bool // as it was read, the end was that of a clean stop
	file  vfs.File
	size  int64
	buf   [maxEntry]byte
	// written and synced count records; what a waiter's record is durable is synced >= its number.
	written, synced int64
	syncing         bool  // an fsync runs outside mu: file may not be replaced
	broken          bool  // an fsync of file failed, or it has lost its name: only a new file helps
	dropped         bool  // a note could not be written; said once
	retired         int64 // size right after the last rewrite
}

// openJournal reads the journal of a folder, or begins one.
func openJournal(fsys vfs.FS, dir string, logger *slog.Logger) (*journal, error) {
	j := &journal{fs: fsys, dir: dir, logger: logger, state: map[ID]Point{}}
	j.moved.L = &j.mu
	path := filepath.Join(dir, JournalName)
	data, err := vfs.ReadFile(fsys, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("flush: %w", err)
	default:
		if err := j.load(path, data); err != nil {
			return nil, err
		}
	}
	if err := j.rewrite(); err != nil {
		return nil, fmt.Errorf("flush: %w", err)
	}
	return j, nil
}

// load reads all records that check.
func (j *journal) load(path string, data []byte) error {
	head := len(journalHead)
	if len(data) >= head && bytes.Equal(data[:8], journalHead[:8]) {
		if v := binary.BigEndian.Uint32(data[8:]); v != 1 {
			return fmt.Errorf("%w: %s has version %d, this program knows 1", ErrNewerJournal, path, v)
		}
	}
	skipped := 0
	for at := min(head, len(data)); at < len(data); {
		kind, id, v, size := readEntry(data[at:])
		if size == 0 {
			at++
			skipped++
			continue
		}
		apply(j.state, kind, id, v)
		j.clean = kind == kindClosed && at+size == len(data)
		at += size
	}
	if skipped > 0 {
		j.logger.Warn("the recovery journal has bytes that do not check, as after a power cut; they are skipped",
			"file", path, "bytes", skipped)
	}
	return nil
}

// image is the file that says what the state says. The caller holds mu.
func (j *journal) image() []byte {
	ids := slices.SortedFunc(maps.Keys(j.state), func(a, b ID) int {
		if c := bytes.Compare(a.Topic[:], b.Topic[:]); c != 0 {
			return c
		}
		return int(a.Partition) - int(b.Partition)
	})
	out := slices.Clone(journalHead)
	for _, id := range ids {
		p := j.state[id]
		out = appendCheckpoint(out, id, p.Checkpoint)
		out = appendEntry(out, kindSynced, id, p.Synced)
		if p.LogStart > 0 {
			out = appendStart(out, id, p.LogStart)
		}
	}
	return out
}

// rewrite puts the state into a new file and makes it the journal. The caller holds mu (or nobody else knows j) and no
// fsync runs. On failure the old file stays in use, if it still has its name; else j is broken.
func (j *journal) rewrite() error {
	path := filepath.Join(j.dir, JournalName)
	img := j.image()
	if err := vfs.WriteFile(j.fs, path, img, false); err != nil {
		return err
	}
	j.broken = true // what is written to the old file from here on, no start reads
	if err := j.fs.SyncDir(j.dir); err != nil {
		return err
	}
	file, err := j.fs.Open(path)
	if err != nil {
		return err
	}
	if j.file != nil {
		if err := j.file.Close(); err != nil {
			j.logger.Warn("closing the old recovery journal", "err", err)
		}
	}
	j.file, j.size, j.retired = file, int64(len(img)), int64(len(img))
	j.broken, j.synced = false, j.written
	j.moved.Broadcast()
	return nil
}

// append writes one record, unsynced, and takes it into the state if that works.
func (j *journal) append(kind byte, id ID, v [6]int64) (number int64, err error) {
	var rec []byte
	if kind == kindStart {
		rec = appendStart(j.buf[:0], id, v[0])
	} else {
		rec = appendEntry(j.buf[:0], kind, id, v[:fields(kind)]...)
	}
	n, err := j.file.WriteAt(rec, j.size)
	if err != nil {
		j.size += int64(n) // half a record does not check and is skipped
		return 0, err
	}
	j.size += int64(len(rec))
	j.written++
	apply(j.state, kind, id, v)
	return j.written, nil
}

// note writes a record that may be lost: it only raises a lower bound.
func (j *journal) note(kind byte, id ID, v [6]int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.append(kind, id, v); err != nil && !j.dropped {
		j.dropped = true
		j.logger.Warn("the recovery journal can't be written; a restart will check more of the logs", "dir", j.dir, "err", err)
	} else if err == nil {
		j.dropped = false
	}
}

// point is what is known of a partition.
func (j *journal) point(id ID) Point {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state[id]
}

// sync makes everything written so far durable, and writes the journal anew when it has grown long or an fsync failed.
func (j *journal) sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.syncing {
		j.moved.Wait()
	}
	if j.broken {
		return j.rewrite()
	}
	if j.size > max(rewriteAt, 4*j.retired) {
		// Without room for another file this one goes on: retention notes a log start before it makes room.
		if err := j.rewrite(); err == nil || j.broken {
			return err
		}
	}
	if j.synced == j.written {
		return nil
	}
	upTo, file := j.written, j.file
	j.syncing = true
	j.mu.Unlock()
	err := file.Sync()
	j.mu.Lock()
	j.syncing = false
	j.moved.Broadcast()
	if err != nil {
		j.broken = true
		return j.rewrite()
	}
	j.synced = max(j.synced, upTo)
	return nil
}

// wait returns when the record with that number is durable. Callers at the same time share an fsync.
func (j *journal) wait(number int64) error {
	for {
		j.mu.Lock()
		done := j.synced >= number
		j.mu.Unlock()
		if done {
			return nil
		}
		if err := j.sync(); err != nil {
			return err
		}
	}
}

// close syncs and closes the file; clean says that it is the end of a clean stop. Opening writes the file anew, so the word does not
// outlive the next start.
func (j *journal) close(clean bool) error {
	err := j.sync()
	if err == nil && clean {
		j.mu.Lock()
		_, err = j.append(kindClosed, ID{}, [6]int64{})
		j.mu.Unlock()
		if err == nil {
			err = j.sync()
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if cerr := j.file.Close(); err == nil {
		err = cerr
	}
	return err
}
