package commitlog

// Expiry is what the topic's retention says of a log at some moment.
type Expiry struct {
	// Start is where the log start may go: the beginning of a segment or, when the active one has expired too, the log's end.
	Start int64
	// PinnedBy is the timestamp in the future that alone keeps the oldest segment: it has been written longer ago than
	// retention.ms. 0 is none.
	PinnedBy int64
}

// Expired finds out which segments have to go under the settings: from the oldest on, whole ones, and only such as lie below
// limit, the last stable offset. end is the log end. No lock is needed.
//
// A segment expires when both say so, its records' greatest timestamp and the time of its last append. Kafka asks the first
// alone, and so deletes what was loaded a minute ago with dates of last year. Without timestamps the time of the last append
// decides, and when not even that is known, the time of the log's opening.
func (l *Log) Expired(c Config, nowMs, limit, end int64) (Expiry, error) {
	list := l.list()
	e := Expiry{Start: l.LogStart()}
	if !c.Deletes {
		return e, nil
	}
	var total int64
	for _, s := range list {
		total += s.size.Load()
	}
	for i, s := range list {
		size, behind := s.size.Load(), end
		if i+1 < len(list) {
			behind = list[i+1].base
		} else if size == 0 {
			break
		}
		if behind > limit {
			break
		}
		old, pin, err := l.aged(s, c.RetentionMs, nowMs)
		if err != nil {
			return e, err
		}
		if excess := c.RetentionBytes >= 0 && total-size >= c.RetentionBytes; !old && !excess {
			e.PinnedBy = pin
			break
		}
		total -= size
		e.Start = max(e.Start, behind)
	}
	return e, nil
}

// aged tells whether a segment is older than retention by both its clocks; pin is its greatest timestamp if that alone denies it.
func (l *Log) aged(s *segment, retentionMs, nowMs int64) (old bool, pin int64, err error) {
	if retentionMs < 0 {
		return false, 0, nil
	}
	greatest, err := l.greatest(s)
	if err != nil {
		return false, 0, err
	}
	written := s.writtenMs.Load()
	if written == 0 {
		written = greatest // a file system without times: the records' own word
	}
	if written <= noTimestamp {
		written = l.o.NowMs
	}
	if greatest <= noTimestamp {
		greatest = written
	}
	byRecords, byFile := nowMs-greatest > retentionMs, nowMs-written > retentionMs
	if byFile && greatest > nowMs {
		pin = greatest
	}
	return byRecords && byFile, pin, nil
}

// Size is the bytes of all batches in the segments of the log.
func (l *Log) Size() (bytes int64) {
	for _, s := range l.list() {
		bytes += s.size.Load()
	}
	return bytes
}

// Floor is the beginning of the segment that an offset belongs to.
func (l *Log) Floor(offset int64) int64 {
	list := l.list()
	return list[max(find(list, offset), 0)].base
}

// RollAt begins a new segment if the log's end is still there and the active segment has a batch, so that all before can go. The
// append lock is held.
func (l *Log) RollAt(end, nowMs int64) (done bool, err error) {
	if l.next != end {
		return false, nil
	}
	if l.active().size.Load() == 0 {
		return true, nil
	}
	return true, l.roll(nowMs)
}

// RollIdle begins a new segment when the active one has a batch and is older than segment.ms by the broker's clock: an append
// would have done it, but none came. The append lock is held.
func (l *Log) RollIdle(nowMs int64) (done bool, err error) {
	s := l.active()
	if s.size.Load() == 0 || !l.tooOld(s, nowMs-s.createdMs) {
		return false, nil
	}
	return true, l.roll(nowMs)
}
