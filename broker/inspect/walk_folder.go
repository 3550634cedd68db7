package inspect

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace/broker/internal/flush"
)

// JournalItem is what the recovery journal says of one partition.
type JournalItem struct {
	place
	TopicID   string `json:"topic_id"`
	Topic     string `json:"topic,omitempty"` // empty when the metadata log knows no topic of the id
	Partition int32  `json:"partition_index"`
	Synced    int64  `json:"synced"` // every batch below was durable
	LogStart  int64  `json:"log_start"`
	// Recovery starts at the checkpoint: an offset, its place in the log, and the sizes of the segment's index files there.
	CheckpointOffset   int64 `json:"checkpoint_offset"`
	CheckpointSegment  int64 `json:"checkpoint_segment"`
	CheckpointPosition int64 `json:"checkpoint_position"`
	IndexBytes         int64 `json:"index_bytes"`
	TimeIndexBytes     int64 `json:"timeindex_bytes"`
	TxnIndexBytes      int64 `json:"txnindex_bytes"`
}

func (i *JournalItem) String() string {
	topic := cmp.Or(i.Topic, "(topic id "+i.TopicID+")")
	return fmt.Sprintf("%s: %s-%d durable below %d, log start %d, checkpoint %d in segment %d at byte %d, indexes %d %d %d bytes", i.File, topic, i.Partition,
		i.Synced, i.LogStart, i.CheckpointOffset, i.CheckpointSegment, i.CheckpointPosition, i.IndexBytes, i.TimeIndexBytes, i.TxnIndexBytes)
}

// Walk calls fn for what stands in the data folder beside the partitions: whose it is, Kafka's checkpoints, our recovery journal. It
// goes on until fn returns an error, which it returns.
func (d *Data) Walk(fn func(Item) error) error {
	for _, name := range []string{cleanerPoints, logStarts, identityFile, recoveryPoints, highWatermarks} {
		text, err := d.optional(name)
		if err != nil {
			return err
		}
		if text == nil {
			continue
		}
		if err := fn(&TextItem{place{"text", name}, string(text)}); err != nil {
			return err
		}
	}
	if d.journal == nil {
		return nil
	}
	if d.journalErr != nil {
		return fn(&GarbageItem{place{"garbage", flush.JournalName}, 0, d.journal.Size, 0, d.journalErr.Error()})
	}
	return d.walkJournal(fn)
}

func (d *Data) walkJournal(fn func(Item) error) error {
	ids := slices.SortedFunc(maps.Keys(d.journal.Points), func(a, b flush.ID) int {
		return cmp.Or(bytes.Compare(a.Topic[:], b.Topic[:]), cmp.Compare(a.Partition, b.Partition))
	})
	for _, id := range ids {
		p := d.journal.Points[id]
		item := &JournalItem{
			place: place{"journal", flush.JournalName}, TopicID: uuidText(id.Topic), Topic: d.topicName(id.Topic), Partition: id.Partition,
			Synced: p.Synced, LogStart: p.LogStart,
			CheckpointOffset: p.Checkpoint.Offset, CheckpointSegment: p.Checkpoint.Segment, CheckpointPosition: p.Checkpoint.Position,
			IndexBytes: p.Checkpoint.Index, TimeIndexBytes: p.Checkpoint.TimeIndex, TxnIndexBytes: p.Checkpoint.TxnIndex,
		}
		if err := fn(item); err != nil {
			return err
		}
	}
	for _, g := range d.journal.Gaps {
		if err := fn(&GarbageItem{place{"garbage", flush.JournalName}, g.Position, g.Bytes, 0, "no record that checks"}); err != nil {
			return err
		}
	}
	return nil
}

func (d *Data) topicName(id [16]byte) string {
	if id == metadataID {
		return metadataTopic
	}
	if d.Cluster != nil && d.Cluster.byID[id] != nil {
		return d.Cluster.byID[id].Name
	}
	return ""
}
