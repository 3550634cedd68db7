package inspect

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/millrace/millrace/core/vfs"
)

// Partition is the folder of one partition. It holds names only and may be used by several goroutines.
type Partition struct {
	Topic string
	Index int32
	Dir   string

	fs    vfs.FS
	files []string // sorted
	logs  []int64  // base offsets of the segments, ascending
}

// Name is topic-partition.
func (p *Partition) Name() string { return p.Topic + "-" + strconv.Itoa(int(p.Index)) }

// Files gives the names of the files in the folder, sorted. Callers must not change the slice.
func (p *Partition) Files() []string { return p.files }

// Bytes is the size of the log files: what a verification has to read, nearly.
func (p *Partition) Bytes() (int64, error) {
	var sum int64
	for _, base := range p.logs {
		info, err := p.fs.Stat(p.path(fileName(base, logSuffix)))
		if err != nil {
			return 0, fmt.Errorf("inspect: %w", err)
		}
		sum += info.Size
	}
	return sum, nil
}

func (p *Partition) path(name string) string { return filepath.Join(p.Dir, name) }

func (p *Partition) has(name string) bool {
	_, ok := slices.BinarySearch(p.files, name)
	return ok
}

// read gives the content of a small file of the folder.
func (p *Partition) read(name string) ([]byte, error) {
	data, err := vfs.ReadFile(p.fs, p.path(name))
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	return data, nil
}

// offsets lists the offsets in the names of the files with a suffix, ascending.
func (p *Partition) offsets(suffix string) []int64 {
	var out []int64
	for _, name := range p.files {
		if offset, s, ok := parseName(name); ok && s == suffix {
			out = append(out, offset)
		}
	}
	return out
}

// segmentOf is the base of the segment that an offset belongs to, -1 if it lies before the first.
func (p *Partition) segmentOf(offset int64) int64 {
	base := int64(-1)
	for _, b := range p.logs {
		if b <= offset {
			base = b
		}
	}
	return base
}

// openPartition looks at a folder whose name says which partition it is.
func openPartition(fsys vfs.FS, dir string) (*Partition, error) {
	name := filepath.Base(dir)
	topic, index, ok := parseFolder(name)
	if !ok {
		topic, index, ok = parseAside(name)
	}
	if !ok {
		return nil, fmt.Errorf("inspect: %s: %q is no name of a partition's folder, which is <topic>-<number>", dir, name)
	}
	p := &Partition{Topic: topic, Index: index, Dir: dir, fs: fsys}
	return p, p.list()
}

// list reads the names anew.
func (p *Partition) list() error {
	names, err := p.fs.List(p.Dir)
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	p.files = names
	p.logs = p.offsets(logSuffix)
	return nil
}
