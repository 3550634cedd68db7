package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/txn/isolation"
)

// rebuild derives files from the batches of one partition, in one pass.
type rebuild struct {
	p     *Partition
	check *ground
	state stateCheck // replays the producers
	wrong map[string]bool
	files []derived
	// checkpoint is what the journal has to say from now on, nil for what it says already: the index files of the segment that
	// the checkpoint lies in may have other sizes now.
	checkpoint *flush.Checkpoint
	id         flush.ID

	snapshots []int64 // the offsets of those that are to be written
	epochs    []epochStart
	segment   segmentIndexes
}

// derived is a file to be written.
type derived struct {
	name string
	data []byte
}

// segmentIndexes are the indexes of one segment as they grow.
type segmentIndexes struct {
	base                  int64
	offsets, times, txns  []byte
	sinceIndex            int64
	greatest, greatestOff int64 // timestamp, and the last offset of the batch that has it
	noted                 int64 // the last timestamp in times
}

func newRebuild(d *Data, p *Partition, wrong map[string]bool) *rebuild {
	c := d.newGround(p, func(Finding) {})
	r := &rebuild{p: p, check: c, wrong: wrong}
	for name := range wrong {
		if offset, suffix, ok := parseName(name); ok && suffix == snapshotSuffix {
			r.snapshots = append(r.snapshots, offset)
		}
	}
	slices.Sort(r.snapshots)
	if c.topic != nil {
		r.id = flush.ID{Topic: c.topic.ID, Partition: p.Index}
	} else {
		r.id = flush.ID{Topic: c.id, Partition: p.Index}
	}
	if p.Topic == metadataTopic {
		r.id.Topic = metadataID
	}
	return r
}

func (r *rebuild) run() error {
	c := r.check
	if err := r.state.load(c); err != nil {
		return err
	}
	for i, base := range r.p.logs {
		if i == 0 {
			r.state.begin(c, base)
		}
		if err := r.walk(base); err != nil {
			return err
		}
	}
	r.snapshotsUpTo(c.next)
	if r.wrong[epochsName] {
		r.add(epochsName, encodeEpochs(r.epochs))
	}
	if r.wrong[metadataName] {
		r.add(metadataName, metadataText(r.id.Topic))
	}
	return nil
}

func (r *rebuild) add(name string, data []byte) { r.files = append(r.files, derived{name, data}) }

// walk takes the batches of one segment in, up to its end or a torn tail.
func (r *rebuild) walk(base int64) error {
	c, cp := r.check, r.check.point.Checkpoint
	name := fileName(base, logSuffix)
	s, err := openScan(r.p.fs, r.p.path(name))
	if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	defer s.close()
	c.next = base
	r.segment = segmentIndexes{base: base, greatest: -1, greatestOff: base, noted: -1}
	for {
		b, pos, err := s.next()
		var m *misfit
		if err == io.EOF || errors.As(err, &m) || err == nil && c.fits(b, nil) != "" {
			break
		}
		if err != nil {
			return fmt.Errorf("inspect: %s: %w", r.p.path(name), err)
		}
		r.snapshotsUpTo(b.BaseOffset())
		if base == cp.Segment && cp.Offset > 0 && b.BaseOffset() >= cp.Offset && r.checkpoint == nil {
			r.noteCheckpoint(cp)
		}
		if n := len(r.epochs); b.LeaderEpoch() >= 0 && (n == 0 || r.epochs[n-1].epoch < b.LeaderEpoch()) {
			r.epochs = append(r.epochs, epochStart{b.LeaderEpoch(), max(b.BaseOffset(), c.logStart)})
		}
		if a := r.state.batch(c, name, b, pos); a != nil {
			r.segment.txns = isolation.AppendEntry(r.segment.txns, *a)
		}
		r.segment.note(b, pos, c.interval)
		c.next = b.LastOffset() + 1
	}
	if base == cp.Segment && cp.Offset > 0 && c.next >= cp.Offset && r.checkpoint == nil {
		r.noteCheckpoint(cp)
	}
	r.segment.noteTime()
	r.indexFiles(base)
	return nil
}

// note takes a batch into the indexes, by Kafka's rule: see package commitlog.
func (x *segmentIndexes) note(b record.Batch, pos, interval int64) {
	if interval == 0 {
		interval = defaultInterval
	}
	if ts := b.MaxTimestamp(); ts > x.greatest {
		x.greatest, x.greatestOff = ts, b.LastOffset()
	}
	if x.sinceIndex > interval {
		x.offsets = binary.BigEndian.AppendUint32(x.offsets, uint32(b.LastOffset()-x.base))
		x.offsets = binary.BigEndian.AppendUint32(x.offsets, uint32(pos))
		x.noteTime()
		x.sinceIndex = 0
	}
	x.sinceIndex += int64(len(b))
}

// noteTime adds the greatest timestamp so far, unless it is there.
func (x *segmentIndexes) noteTime() {
	if x.greatest > x.noted {
		x.times = binary.BigEndian.AppendUint64(x.times, uint64(x.greatest))
		x.times = binary.BigEndian.AppendUint32(x.times, uint32(x.greatestOff-x.base))
		x.noted = x.greatest
	}
}

// noteCheckpoint says how much of the new indexes lies below the checkpoint. The time index has to end with the greatest timestamp
// up to there: the broker goes on from it.
func (r *rebuild) noteCheckpoint(cp flush.Checkpoint) {
	r.segment.noteTime()
	cp.Index, cp.TimeIndex, cp.TxnIndex = int64(len(r.segment.offsets)), int64(len(r.segment.times)), int64(len(r.segment.txns))
	r.checkpoint = &cp
}

// indexFiles adds the index files of the segment under way. They fit each other only as a whole, so one that is wrong has all made
// anew.
func (r *rebuild) indexFiles(base int64) {
	touched := false
	for _, suffix := range []string{indexSuffix, timeSuffix, txnSuffix, sumSuffix} {
		touched = touched || r.wrong[fileName(base, suffix)]
	}
	if !touched {
		if r.checkpoint != nil && r.checkpoint.Segment == base {
			r.checkpoint = nil
		}
		return
	}
	r.add(fileName(base, indexSuffix), r.segment.offsets)
	r.add(fileName(base, timeSuffix), r.segment.times)
	txns := fileName(base, txnSuffix)
	if len(r.segment.txns) == 0 && !r.p.has(txns) {
		return
	}
	r.add(txns, r.segment.txns)
	if r.check.journal {
		r.add(fileName(base, sumSuffix), encodeSum(r.segment.txns))
	}
}

// snapshotsUpTo adds the wanted snapshots up to an offset, the next batch's.
func (r *rebuild) snapshotsUpTo(offset int64) {
	for len(r.snapshots) > 0 && r.snapshots[0] <= offset {
		r.add(fileName(r.snapshots[0], snapshotSuffix), r.state.table.Snapshot(nil))
		r.snapshots = r.snapshots[1:]
	}
}

func encodeEpochs(list []epochStart) []byte {
	out := fmt.Appendf(nil, "0\n%d\n", len(list))
	for _, s := range list {
		out = fmt.Appendf(out, "%d %d\n", s.epoch, s.start)
	}
	return out
}
