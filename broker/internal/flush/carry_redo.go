package flush

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/core/vfs"
)

// redoFiles bounds how many files a redo has open: a broker closes those that it does not use, and may serve more partitions than its
// process may have files open.
const redoFiles = 256

// redo is what a restart does with the append journals of a process that did not stop cleanly, before anybody opens a
// partition: the bytes go to the files that they were appended to, the files are synced, the recovery journal learns that, and the
// append journals go. Each step may be done again after a crash in the next one.
type redo struct {
	fs     vfs.FS
	dir    string
	state  map[ID]Point // the recovery journal's
	topics map[string]string
	files  map[string]vfs.File
}

// carried reads the append journals of a folder: all pieces, the oldest first, and the greatest generation.
func carried(fsys vfs.FS, dir string) (pieces []Piece, generation uint64, names []string, err error) {
	type journal struct {
		generation uint64
		pieces     []Piece
	}
	var all []journal
	for i := range carryFiles {
		name := fmt.Sprintf("%s%d", CarryName, i)
		data, err := vfs.ReadFile(fsys, filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, nil, fmt.Errorf("flush: %w", err)
		}
		names = append(names, name)
		g, p := readCarry(data)
		generation = max(generation, g)
		all = append(all, journal{g, p})
	}
	slices.SortFunc(all, func(a, b journal) int {
		if a.generation < b.generation {
			return -1
		}
		return 1
	})
	for _, j := range all {
		pieces = append(pieces, j.pieces...)
	}
	return pieces, generation, names, nil
}

// redoCarried brings the files of a folder up to the append journals. Its caller owns j, and nobody has a file open.
func redoCarried(j *journal, parallel int) (generation uint64, err error) {
	pieces, generation, names, err := carried(j.fs, j.dir)
	if err != nil || len(names) == 0 {
		return generation, err
	}
	r := &redo{fs: j.fs, dir: j.dir, state: j.state, topics: map[string]string{}, files: map[string]vfs.File{}}
	synced := map[ID]int64{}
	// A file's pieces come in one go and in their order, so that no more files than redoFiles have to be open.
	slices.SortStableFunc(pieces, func(a, b Piece) int { return strings.Compare(a.File, b.File) })
	for _, p := range pieces {
		if p.Next <= j.state[p.ID].Synced { // durable in its own file, which compaction may have replaced since
			continue
		}
		done, err := r.piece(p, parallel)
		if err != nil {
			return 0, errors.Join(fmt.Errorf("flush: redo of %d bytes at %d of %s: %w", len(p.Data), p.Position, p.File, err), r.close())
		}
		if done {
			synced[p.ID] = max(synced[p.ID], p.Next)
		}
	}
	if err := r.settle(parallel); err != nil {
		return 0, fmt.Errorf("flush: redo: %w", err)
	}
	for id, next := range synced {
		apply(j.state, kindSynced, id, [6]int64{next})
	}
	if err := j.rewrite(); err != nil {
		return 0, fmt.Errorf("flush: redo: %w", err)
	}
	for _, name := range names {
		if err := j.fs.Remove(filepath.Join(j.dir, name)); err != nil {
			return 0, fmt.Errorf("flush: redo: %w", err)
		}
	}
	return generation, nil
}

// piece puts a piece where it belongs; done is false when its partition or segment is not there any more.
func (r *redo) piece(p Piece, parallel int) (done bool, err error) {
	if !below(p.File) {
		return false, errors.New("the path leads out of the folder")
	}
	if ours, err := r.owns(path.Dir(p.File), p.ID); !ours || err != nil {
		return false, err
	}
	f := r.files[p.File]
	if f == nil {
		if len(r.files) == redoFiles {
			if err := r.settle(parallel); err != nil {
				return false, err
			}
		}
		f, err = r.fs.Open(filepath.Join(r.dir, filepath.FromSlash(p.File)))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil // retention took it: a segment is never begun without its name being durable
		}
		if err != nil {
			return false, err
		}
		r.files[p.File] = f
	}
	// Written even where the file reads the same: a kernel whose sync failed once may take bytes for written that are not.
	_, err = f.WriteAt(p.Data, p.Position)
	return err == nil, err
}

// owns says that a folder is the partition's: one of a topic of the same name that was created later has another id in its
// partition.metadata.
func (r *redo) owns(folder string, id ID) (bool, error) {
	text, known := r.topics[folder]
	if !known {
		data, err := vfs.ReadFile(r.fs, filepath.Join(r.dir, filepath.FromSlash(folder), "partition.metadata"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		text = string(data)
		r.topics[folder] = text
	}
	return id.Topic == [16]byte{} && text != "" || strings.Contains(text, base64.RawURLEncoding.EncodeToString(id.Topic[:])), nil
}

// settle makes durable what was put into the open files, and closes them.
func (r *redo) settle(parallel int) error { return errors.Join(r.sync(parallel), r.close()) }

// sync syncs the files, so many at the same time: a thousand partitions may have bytes in an append journal.
func (r *redo) sync(parallel int) error {
	names := r.names()
	var next atomic.Int64
	errs := make([]error, max(parallel, 1))
	work := func(worker int) {
		for i := next.Add(1) - 1; i < int64(len(names)) && errs[worker] == nil; i = next.Add(1) - 1 {
			errs[worker] = r.files[names[i]].Sync()
		}
	}
	var others sync.WaitGroup
	for worker := 1; worker < min(parallel, len(names)); worker++ {
		others.Go(func() { work(worker) })
	}
	work(0)
	others.Wait()
	return errors.Join(errs...)
}

func (r *redo) names() []string {
	names := make([]string, 0, len(r.files))
	for name := range r.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (r *redo) close() error {
	var err error
	for _, name := range r.names() {
		err = errors.Join(err, r.files[name].Close())
	}
	clear(r.files)
	return err
}
