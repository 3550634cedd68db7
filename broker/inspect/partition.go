package inspect

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/millrace/millrace/broker/internal/logdir"
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
	swaps []swap   // compacted segments that are not in their place yet
}

// swap is a compacted segment that counts already, in place of all segments from base up to end, and lies under another name
// until the next start.
type swap struct {
	base, end int64
	name      string
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

// Begins is the offset of the first segment, 0 without one.
func (p *Partition) Begins() int64 {
	if len(p.logs) == 0 {
		return 0
	}
	return p.logs[0]
}

// path is where a file lies. The log of a compacted segment has its old name for who asks.
func (p *Partition) path(name string) string {
	for _, s := range p.swaps {
		if name == fileName(s.base, logSuffix) {
			return filepath.Join(p.Dir, s.name)
		}
	}
	return filepath.Join(p.Dir, name)
}

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
	p.swaps = nil
	for _, name := range names {
		if base, end, ok := logdir.ParseSwap(name); ok {
			p.swaps = append(p.swaps, swap{base, end, name})
		}
	}
	p.files = p.visible(names)
	p.logs = p.offsets(logSuffix)
	return nil
}

// visible are the names of the files that count: not those of segments that a compacted one has replaced, but its log's.
func (p *Partition) visible(names []string) []string {
	if len(p.swaps) == 0 {
		return names
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		offset, suffix, ok := parseName(name)
		return ok && suffix != snapshotSuffix && slices.ContainsFunc(p.swaps, func(s swap) bool { return s.base <= offset && offset < s.end })
	})
	for _, s := range p.swaps {
		names = append(names, fileName(s.base, logSuffix))
	}
	slices.Sort(names)
	return names
}
