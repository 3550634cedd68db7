package compact

import "math"

// Segment is what a plan knows of a segment that may be compacted.
type Segment struct {
	Base, End int64 // offsets; the next one begins at End
	Bytes     int64
}

// Terms are a topic's settings and what is known of the log, for Choose.
type Terms struct {
	NowMs      int64
	LogStart   int64
	LogEnd     int64
	Cleaned    int64 // earlier rounds have seen all below
	HorizonMs  int64 // when something may go that only waits for its delete horizon; math.MaxInt64 when nothing does
	DirtyRatio float64
	MinLagMs   int64
	MaxLagMs   int64 // 0 is no bound
	// First and Greatest are the first batch's and the greatest timestamp of a segment, -1 when it has none. They may read files and
	// are asked only where a setting needs them.
	First, Greatest func(i int) (int64, error)
}

// Plan is a round that Choose found.
type Plan struct {
	Due   bool
	Count int     // of segments, from the first one on, that the round compacts
	From  int64   // the first offset that no round has seen
	Until int64   // the end of the last segment
	Ratio float64 // dirty bytes of all
	Dirty int64   // bytes that no round has seen
}

// Choose plans the next round over the finished segments of a log, which follow one another. It is due when enough of the log is
// dirty, when a record has waited for longer than max.compaction.lag.ms or, other than in Kafka, when a tombstone or marker may go at
// last: so an idle log comes to its end, and then costs nothing.
func Choose(segments []Segment, t Terms) (Plan, error) {
	if t.Cleaned > t.LogEnd { // of a log that was longer once
		t.Cleaned = 0
	}
	p := Plan{From: max(t.Cleaned, t.LogStart)}
	var clean int64
	lagging := false
	for i, s := range segments {
		if s.End > p.From {
			young, late, err := t.lag(i)
			if err != nil {
				return Plan{}, err
			}
			if young {
				break
			}
			lagging = lagging || late
			p.Dirty += s.Bytes
		} else {
			clean += s.Bytes
		}
		p.Count, p.Until = i+1, s.End
	}
	if p.Dirty > 0 {
		p.Ratio = float64(p.Dirty) / float64(p.Dirty+clean)
	}
	p.From = min(p.From, p.Until)
	p.Due = p.Count > 0 && (p.Dirty > 0 && (p.Ratio > t.DirtyRatio || lagging) || t.HorizonMs < math.MaxInt64 && t.NowMs >= t.HorizonMs)
	return p, nil
}

// lag tells whether a segment has to wait for min.compaction.lag.ms, or has waited for max.compaction.lag.ms.
func (t *Terms) lag(i int) (young, late bool, err error) {
	if t.MinLagMs > 0 {
		greatest, err := t.Greatest(i)
		if err != nil || greatest > t.NowMs-t.MinLagMs {
			return true, false, err
		}
	}
	if t.MaxLagMs > 0 && t.MaxLagMs < math.MaxInt64 {
		first, err := t.First(i)
		return false, err == nil && first > 0 && t.NowMs-first > t.MaxLagMs, err
	}
	return false, false, nil
}

// Group is how many of the segments, from the first one on, make one new segment: as many as fit before they are compacted.
func Group(segments []Segment, maxBytes int64) int {
	n, bytes := 0, int64(0)
	for ; n < len(segments); n++ {
		bytes += segments[n].Bytes
		if n > 0 && (bytes > maxBytes || segments[n].End-1-segments[0].Base > math.MaxInt32) {
			break
		}
	}
	return n
}
