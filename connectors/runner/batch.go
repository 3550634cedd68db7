package runner

import (
	"cmp"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/connectors"
)

// mark is how far a partition was read: the offset after the last record seen,
// transaction markers included, and that record's leader epoch.
type mark struct {
	next  int64
	epoch int32
}

// pending collects what was read and is not stored yet. The task owns it.
type pending struct {
	records []connectors.Record
	rejects []connectors.Reject
	bytes   int
	to      map[connectors.TP]mark
	since   time.Time // when the first of it came
}

func (p *pending) empty() bool { return len(p.to) == 0 }

func (p *pending) reset() { *p = pending{} }

// add takes a record in. A marker of a transaction only moves the position.
func (p *pending) add(r *kgo.Record, key, value connectors.Decoder, now time.Time) {
	tp := connectors.TP{Topic: r.Topic, Partition: r.Partition}
	if p.to == nil {
		p.to, p.since = map[connectors.TP]mark{}, now
	}
	p.to[tp] = mark{next: r.Offset + 1, epoch: r.LeaderEpoch}
	if r.Attrs.IsControl() {
		return
	}
	rec := connectors.Record{
		TP: tp, Offset: r.Offset, LeaderEpoch: r.LeaderEpoch, Time: r.Timestamp.UTC(), RawKey: r.Key, RawValue: r.Value,
	}
	p.bytes += len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, connectors.Header{Key: h.Key, Value: h.Value})
		p.bytes += len(h.Key) + len(h.Value)
	}
	reason := "decode-key"
	err := decode(key, r.Key, &rec.Key)
	if err == nil {
		reason, err = "decode-value", decode(value, r.Value, &rec.Value)
	}
	if err != nil {
		p.rejects = append(p.rejects, connectors.Reject{Record: rec, Reason: reason, Err: err.Error()})
		return
	}
	p.records = append(p.records, rec)
}

func decode(d connectors.Decoder, b []byte, into *any) error {
	if b == nil {
		return nil
	}
	v, err := d.Decode(b)
	if err != nil {
		return err
	}
	*into = v
	return nil
}

// batch makes a commit of it, starting from the positions at.
func (p *pending) batch(at func(connectors.TP) (connectors.TopicID, connectors.Fence, connectors.Position)) *connectors.Batch {
	b := &connectors.Batch{Records: p.records, Rejects: p.rejects}
	for tp, m := range p.to {
		id, fence, from := at(tp)
		to := connectors.Position{TopicID: id, Next: m.next, LeaderEpoch: m.epoch, Seq: from.Seq + 1, Meta: from.Meta}
		b.Ranges = append(b.Ranges, connectors.Range{TP: tp, Fence: fence, From: from, To: to})
	}
	slices.SortFunc(b.Ranges, func(x, y connectors.Range) int { return compareTP(x.TP, y.TP) })
	return b
}

func compareTP(a, b connectors.TP) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// without moves the records at the given indexes to the rejects. The batch
// handed to the sink before stays as it was.
func without(b *connectors.Batch, bad []*connectors.RejectError) *connectors.Batch {
	reason := make(map[int]*connectors.RejectError, len(bad))
	for _, r := range bad {
		reason[r.Index] = r
	}
	out := &connectors.Batch{Rejects: slices.Clone(b.Rejects), Ranges: b.Ranges}
	for i, rec := range b.Records {
		if r := reason[i]; r != nil {
			out.Rejects = append(out.Rejects, connectors.Reject{Record: rec, Reason: r.Reason, Err: r.Err.Error()})
			continue
		}
		out.Records = append(out.Records, rec)
	}
	return out
}

// halve splits a batch of at least two records into two that are committed one
// after the other. The second starts where the first ends.
func halve(b *connectors.Batch) (first, second *connectors.Batch) {
	cut := len(b.Records) / 2
	first = &connectors.Batch{Records: b.Records[:cut]}
	second = &connectors.Batch{Records: b.Records[cut:]}
	end := map[connectors.TP]mark{} // of the first half
	for _, r := range first.Records {
		end[r.TP] = mark{next: r.Offset + 1, epoch: r.LeaderEpoch}
	}
	more := map[connectors.TP]bool{} // partitions of the second half
	for _, r := range second.Records {
		more[r.TP] = true
	}
	for _, r := range b.Ranges {
		m, inFirst := end[r.TP]
		switch {
		case inFirst && more[r.TP]:
			mid := r.To
			mid.Next, mid.LeaderEpoch = m.next, m.epoch
			last := r.To
			last.Seq = mid.Seq + 1
			first.Ranges = append(first.Ranges, connectors.Range{TP: r.TP, Fence: r.Fence, From: r.From, To: mid})
			second.Ranges = append(second.Ranges, connectors.Range{TP: r.TP, Fence: r.Fence, From: mid, To: last})
		case inFirst:
			first.Ranges = append(first.Ranges, r)
			end[r.TP] = mark{next: r.To.Next}
		default:
			second.Ranges = append(second.Ranges, r)
		}
	}
	for _, r := range b.Rejects {
		if m, inFirst := end[r.Record.TP]; inFirst && r.Record.Offset < m.next {
			first.Rejects = append(first.Rejects, r)
		} else {
			second.Rejects = append(second.Rejects, r)
		}
	}
	return first, second
}
