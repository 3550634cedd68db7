package commitlog

import (
	"path/filepath"
)

// BeginCarry is Begin for a flush whose bytes an append journal carries: Read and Carried take the place of Data and Indexes. nil
// when that can't be, because more than bytes at the end of the active segment is to be made durable, or a checkpoint is due. The
// append lock is held, and Done must follow.
func (l *Log) BeginCarry(bytes int64) *Sync {
	s := l.active()
	switch {
	case len(l.unfinished)+len(l.starts)+len(l.doomed) > 0, l.dirDirty, l.parent, l.metaDirty:
		return nil
	case l.sinceCheck >= l.o.CheckpointBytes, s.size.Load()-s.durableSize() > bytes:
		return nil
	}
	return l.Begin(false)
}

// durableSize is how much of the log file is durable, there or in an append journal. The flush owns it.
func (s *segment) durableSize() int64 { return max(s.syncedSize, s.carriedSize) }

// Read appends the bytes that are to be made durable to dst and tells where they stand in the segment.
func (p *Sync) Read(dst []byte) (data []byte, position int64, err error) {
	position = p.active.durableSize()
	n := int(p.end.Bytes - position)
	if n <= 0 {
		return dst, position, nil
	}
	file, err := p.active.handle()
	if err != nil {
		return nil, 0, err
	}
	if cap(dst)-len(dst) < n {
		dst = append(make([]byte, 0, len(dst)+max(n, 4<<10)), dst...)
	}
	data = dst[:len(dst)+n]
	_, err = file.ReadAt(data[len(dst):], position)
	return data, position, err
}

// File is the segment's log file, as a path below the folder that holds the partition's own.
func (p *Sync) File() string {
	s := p.active
	if s.carryName == "" {
		s.carryName = filepath.Base(s.dir) + "/" + fileName(s.base, logSuffix)
	}
	return s.carryName
}

// Carried says that an append journal holds durably what Read gave.
func (p *Sync) Carried() {
	p.active.carriedSize = p.end.Bytes
	p.durable = true
}
