package inspect

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Lines of text, one for each kind of item: what a person wants to see of it, names short and in the order of interest.

func (b *BatchItem) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s @%d batch %d..%d count %d size %d codec %s", b.File, b.Position, b.BaseOffset, b.BaseOffset+int64(b.LastOffsetDelta), b.Count, b.Size, b.Codec)
	fmt.Fprintf(&s, " epoch %d %s %d..%d", b.LeaderEpoch, b.TimestampType, b.BaseTimestamp, b.MaxTimestamp)
	if b.ProducerID >= 0 {
		fmt.Fprintf(&s, " producer %d/%d sequence %d", b.ProducerID, b.ProducerEpoch, b.BaseSequence)
	}
	for _, flag := range []struct {
		set  bool
		name string
	}{{b.Transactional, "transactional"}, {b.Control, "control"}, {b.DeleteHorizonSet, "delete-horizon"}, {!b.CRCOK, "CRC-WRONG"}} {
		if flag.set {
			s.WriteString(" " + flag.name)
		}
	}
	if b.Magic != 2 {
		fmt.Fprintf(&s, " MAGIC %d", b.Magic)
	}
	if b.RecordsUnreadable != "" {
		s.WriteString(" RECORDS UNREADABLE: " + b.RecordsUnreadable)
	}
	return s.String()
}

func (r *RecordItem) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "  record %d timestamp %d", r.Offset, r.Timestamp)
	switch {
	case r.Control != nil:
		fmt.Fprintf(&s, " %s %s", r.Control.What, compact(r.Control.Value))
	case r.Decoded != nil && r.Error == "":
		if r.Decoded.Key != nil {
			fmt.Fprintf(&s, " %s %s", r.Decoded.Key.Type, compact(r.Decoded.Key.Data))
		}
		if v := r.Decoded.Value; v == nil {
			s.WriteString(" tombstone")
		} else {
			fmt.Fprintf(&s, " %s v%d %s", v.Type, v.Version, compact(v.Data))
		}
	default:
		fmt.Fprintf(&s, " key %s value %s", r.Key, r.Value)
		for _, h := range r.Headers {
			fmt.Fprintf(&s, " header %q=%s", h.Key, h.Value)
		}
	}
	if r.Error != "" {
		s.WriteString(" UNREADABLE: " + r.Error)
	}
	return s.String()
}

// compact is v as JSON, which of the types here can always be written.
func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (e *OffsetItem) String() string {
	return fmt.Sprintf("%s entry %d: offset %d at byte %d", e.File, e.Entry, e.Offset, e.Position)
}

func (e *TimeItem) String() string {
	return fmt.Sprintf("%s entry %d: timestamp %d by offset %d", e.File, e.Entry, e.Timestamp, e.Offset)
}

func (e *AbortedItem) String() string {
	return fmt.Sprintf("%s entry %d: producer %d aborted %d..%d, last stable offset %d", e.File, e.Entry, e.ProducerID, e.FirstOffset, e.LastOffset, e.LastStableOffset)
}

func (e *EndItem) String() string {
	s := fmt.Sprintf("%s: %d entries in %d bytes", e.File, e.Entries, e.FileBytes)
	if e.RestBytes > 0 {
		s += fmt.Sprintf(", %d bytes behind them", e.RestBytes)
	}
	return s
}

func (i *SnapshotItem) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: producer snapshot", i.File)
	switch {
	case i.Error != "":
		s.WriteString(" UNREADABLE: " + i.Error)
		return s.String()
	case !i.CRCOK:
		s.WriteString(" CRC-WRONG")
	}
	fmt.Fprintf(&s, " of %d producers", len(i.Data.Producers))
	for _, e := range i.Data.Producers {
		fmt.Fprintf(&s, "\n  producer %d/%d sequence %d offset %d timestamp %d coordinator epoch %d", e.ProducerID, e.Epoch, e.LastSequence, e.LastOffset, e.Timestamp, e.CoordinatorEpoch)
		if e.TxnFirstOffset >= 0 {
			fmt.Fprintf(&s, " open transaction from %d", e.TxnFirstOffset)
		}
	}
	return s.String()
}

func (i *TextItem) String() string {
	return i.File + ": " + strings.ReplaceAll(strings.TrimSuffix(i.Text, "\n"), "\n", " | ")
}

func (i *GarbageItem) String() string {
	return fmt.Sprintf("%s @%d NO BATCH: %s (%d bytes are left, the length field says %d)", i.File, i.Position, i.Why, i.Bytes, i.BatchSize)
}
