package inspect

import (
	"fmt"

	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
)

// indexCheck compares one index file of a segment with the segment's batches as they come.
type indexCheck interface {
	batch(c *ground, b record.Batch, pos int64, aborted *isolation.AbortedTxn)
	// lost says that there was damage: what follows in this file can not be judged.
	lost()
	end(c *ground)
}

// openIndexes reads the index files of a segment. Of a folder with a journal only what the checkpoint covers counts: what lies
// behind is in memory while a broker runs, and made anew when one starts.
func (c *ground) openIndexes(base int64, last bool) ([]indexCheck, error) {
	cp := c.point.Checkpoint
	counts, limits := true, [3]int64{-1, -1, -1} // no limit
	switch {
	case !c.journal:
	case base > cp.Segment || cp.Offset == 0:
		counts = false
	case base == cp.Segment:
		limits = [3]int64{cp.Index, cp.TimeIndex, cp.TxnIndex}
	}
	if !counts {
		return nil, nil
	}
	var out []indexCheck
	for i, suffix := range []string{indexSuffix, timeSuffix, txnSuffix} {
		x := index{name: fileName(base, suffix), base: base, limit: limits[i], last: last}
		if err := x.load(c, suffix); err != nil {
			return nil, err
		}
		switch suffix {
		case indexSuffix:
			out = append(out, &offsetCheck{index: x})
		case timeSuffix:
			out = append(out, &timeCheck{index: x, greatest: -1})
		default:
			out = append(out, &txnCheck{index: x})
		}
	}
	return out, nil
}

// index is what the three checks have in common.
type index struct {
	name    string
	base    int64
	limit   int64 // of the bytes that count, -1 for all
	last    bool  // the segment is the last one
	missing bool
	data    []byte
	size    int
	n, at   int  // entries, and the next one to be met
	skip    bool // something was found: one finding for a file is enough
}

func (x *index) load(c *ground, suffix string) (err error) {
	x.size = map[string]int{indexSuffix: offsetEntrySize, timeSuffix: timeEntrySize, txnSuffix: isolation.EntrySize}[suffix]
	if x.missing = !c.p.has(x.name); x.missing {
		if suffix == txnSuffix {
			if err := c.sum(x.base, nil, max(x.limit, 0)); err != nil {
				return err
			}
		}
		if x.skip = suffix != txnSuffix && x.limit != 0; x.skip {
			c.find(Rebuildable, x.name, -1, -1, "the index is missing")
		}
		return nil
	}
	if x.data, err = c.p.read(x.name); err != nil {
		return err
	}
	if suffix == txnSuffix {
		size := x.limit
		if size < 0 {
			size = int64(len(x.data))
		}
		if err := c.sum(x.base, x.data, size); err != nil {
			return err
		}
	}
	if x.limit >= 0 {
		if int64(len(x.data)) < x.limit {
			x.found(c, int64(len(x.data)), "the index ends here, but %d bytes of it were durable", x.limit)
		}
		x.data = x.data[:min(int64(len(x.data)), x.limit)]
	}
	var rest []byte
	x.n, rest = wholeEntries(x.data, x.size)
	if !zeros(rest) || len(rest) > 0 && suffix == txnSuffix {
		x.found(c, int64(x.n*x.size), "%d bytes that are no entry stand behind the last one", len(rest))
	}
	return nil
}

// found reports that the index is wrong, once.
func (x *index) found(c *ground, position int64, format string, args ...any) {
	if !x.skip {
		x.skip = true
		c.find(Rebuildable, x.name, position, -1, "%s", fmt.Sprintf(format, args...))
	}
}

func (x *index) lost() { x.skip = true }

func (x *index) entry(i int) []byte { return x.data[i*x.size:] }

// place is the position of the entry that is to be met next.
func (x *index) place() int64 { return int64(x.at * x.size) }

// offsetCheck is that of an offset index: entries rise, and each leads to the start of a batch that ends at its offset.
type offsetCheck struct {
	index
	indexed, largest int64 // where the last indexed batch starts, and the largest batch so far
}

func (x *offsetCheck) batch(c *ground, b record.Batch, pos int64, _ *isolation.AbortedTxn) {
	x.largest = max(x.largest, int64(len(b)))
	if x.skip {
		return
	}
	if x.at < x.n {
		e := parseOffsetEntry(x.entry(x.at))
		if offset := x.base + int64(e.relative); offset <= b.LastOffset() || int64(e.position) <= pos {
			if offset != b.LastOffset() || int64(e.position) != pos {
				x.found(c, x.place(), "the entry says that the batch up to offset %d starts at byte %d, which is not so", offset, e.position)
				return
			}
			x.at++
			x.indexed = pos
			return
		}
	}
	// A stretch without an entry costs look-ups time; it is told from a changed setting by being far too long.
	if c.interval > 0 && !c.compacted && x.limit < 0 && pos-x.indexed > 4*c.interval+2*x.largest {
		x.found(c, x.place(), "no entry between bytes %d and %d, one is due every %d bytes", x.indexed, pos, c.interval)
	}
}

func (x *offsetCheck) end(c *ground) {
	if !x.skip && x.at < x.n {
		e := parseOffsetEntry(x.entry(x.at))
		x.found(c, x.place(), "the entry says that a batch up to offset %d starts at byte %d, behind the end of the log", x.base+int64(e.relative), e.position)
	}
}

// timeCheck is that of a time index: an entry has the greatest timestamp up to the batch that it names, and that batch has it.
type timeCheck struct {
	index
	greatest int64 // of the batches so far
	from     int64 // offset of the batch that has it
}

func (x *timeCheck) batch(c *ground, b record.Batch, _ int64, _ *isolation.AbortedTxn) {
	if ts := b.MaxTimestamp(); ts > x.greatest {
		x.greatest, x.from = ts, b.LastOffset()
	}
	if x.skip || x.at >= x.n {
		return
	}
	e := parseTimeEntry(x.entry(x.at))
	switch offset := x.base + int64(e.relative); {
	case offset > b.LastOffset():
	case offset < b.LastOffset() || e.timestamp != x.greatest || x.from != offset:
		x.found(c, x.place(), "the entry says that timestamp %d, by the batch up to offset %d, is the greatest so far, which is not so", e.timestamp, offset)
	default:
		x.at++
	}
}

func (x *timeCheck) end(c *ground) {
	switch {
	case x.skip:
	case x.at < x.n:
		e := parseTimeEntry(x.entry(x.at))
		x.found(c, x.place(), "the entry is for a batch up to offset %d, which is not there", x.base+int64(e.relative))
	case x.last || x.limit >= 0 || x.greatest < 0:
	case x.n == 0 || parseTimeEntry(x.entry(x.n-1)).timestamp < x.greatest:
		x.found(c, x.place(), "the segment's greatest timestamp, %d at offset %d, is not in the index", x.greatest, x.from)
	}
}

// txnCheck is that of a transaction index: exactly the aborted transactions whose markers are in the segment.
type txnCheck struct{ index }

func (x *txnCheck) batch(c *ground, b record.Batch, _ int64, aborted *isolation.AbortedTxn) {
	if x.skip {
		return
	}
	for x.at < x.n {
		version, a := parseAborted(x.entry(x.at))
		switch {
		case version != 0:
			x.found(c, x.place(), "the entry has version %d, only 0 is known", version)
			return
		case a.LastOffset > b.LastOffset():
			x.due(c, aborted)
			return
		case a.LastOffset < b.BaseOffset() && (c.compacted || c.thinned):
			x.at++ // the marker is gone, the entry goes with the next compaction
			continue
		case aborted == nil && c.guesses() && isAbort(b, a):
			// The transaction began before the log, or compaction removed its records.
		case aborted == nil || !sameTxn(a, *aborted, c.guesses()):
			x.found(c, x.place(), "the entry says that producer %d aborted offsets %d to %d, last stable offset %d, which is not so",
				a.ProducerID, a.FirstOffset, a.LastOffset, a.LastStableOffset)
			return
		}
		x.at++
		return
	}
	x.due(c, aborted)
}

// due says that an aborted transaction has no entry.
func (x *txnCheck) due(c *ground, aborted *isolation.AbortedTxn) {
	if aborted != nil && (x.limit < 0 || aborted.LastOffset < c.point.Checkpoint.Offset) {
		x.found(c, x.place(), "producer %d aborted offsets %d to %d, which is not in the index", aborted.ProducerID, aborted.FirstOffset, aborted.LastOffset)
	}
}

func (x *txnCheck) end(c *ground) {
	if !x.skip && x.at < x.n && !(c.compacted || c.thinned) {
		_, a := parseAborted(x.entry(x.at))
		x.found(c, x.place(), "the entry is for a marker at offset %d, which is not there", a.LastOffset)
	}
}

// isAbort tells whether a batch is the marker that an entry speaks of.
func isAbort(b record.Batch, a isolation.AbortedTxn) bool {
	m, ok, err := b.Marker()
	return err == nil && ok && !m.Commit && m.ProducerID == a.ProducerID && b.BaseOffset() == a.LastOffset
}

// sameTxn compares an entry with what a replay gives. Where the replay has to guess what was open before it began, the last stable
// offset is not compared, and the transaction may have begun earlier: compaction takes its first records first.
func sameTxn(a, replayed isolation.AbortedTxn, guess bool) bool {
	if guess {
		a.LastStableOffset = replayed.LastStableOffset
		if a.FirstOffset < replayed.FirstOffset {
			a.FirstOffset = replayed.FirstOffset
		}
	}
	return a == replayed
}
