package inspect

import "github.com/millrace/millrace/broker/inspect/internal/schema"

// Item is one thing in a partition's folder. The closed set is *[BatchItem], *[RecordItem], *[OffsetItem], *[TimeItem],
// *[AbortedItem], *[SumItem], *[EndItem], *[SnapshotItem], *[JournalItem],
// *[TextItem] and *[GarbageItem]. An item is valid until the next one, except for
// its strings.
type Item interface {
	// String is a line of text, or several.
	String() string
	item()
}

// place opens every item.
type place struct {
	Kind string `json:"kind"`
	File string `json:"file"`
}

func (place) item() {}

// BatchItem is the header of a batch.
type BatchItem struct {
	place
	Position          int64  `json:"position"`
	Size              int64  `json:"size"`
	BaseOffset        int64  `json:"base_offset"`
	LastOffsetDelta   int32  `json:"last_offset_delta"`
	Count             int32  `json:"count"`
	Length            int32  `json:"length"`
	LeaderEpoch       int32  `json:"partition_leader_epoch"`
	Magic             int8   `json:"magic"`
	CRC               uint32 `json:"crc"`
	CRCOK             bool   `json:"crc_ok"`
	Attributes        uint16 `json:"attributes"`
	Codec             string `json:"codec"`
	TimestampType     string `json:"timestamp_type"`
	Transactional     bool   `json:"transactional"`
	Control           bool   `json:"control"`
	DeleteHorizonSet  bool   `json:"delete_horizon_set"`
	DeleteHorizonMs   *int64 `json:"delete_horizon_ms,omitempty"`
	BaseTimestamp     int64  `json:"base_timestamp"`
	MaxTimestamp      int64  `json:"max_timestamp"`
	ProducerID        int64  `json:"producer_id"`
	ProducerEpoch     int16  `json:"producer_epoch"`
	BaseSequence      int32  `json:"base_sequence"`
	RecordsUnreadable string `json:"records_unreadable,omitempty"` // why the records are not shown
}

// RecordItem is one record. The decoded fields are there where the topic is one that brokers write themselves.
type RecordItem struct {
	place
	Offset         int64         `json:"offset"`
	OffsetDelta    int32         `json:"offset_delta"`
	Timestamp      int64         `json:"timestamp"`
	TimestampDelta int64         `json:"timestamp_delta"`
	Sequence       int32         `json:"sequence"`
	Length         int           `json:"length"`
	Key            Payload       `json:"key"`
	Value          Payload       `json:"value"`
	Headers        []ShownHeader `json:"headers,omitempty"`
	Control        *Control      `json:"control,omitempty"`
	*Decoded
	// Error says why a record of a broker's own topic could not be decoded.
	Error string `json:"error,omitempty"`
}

// Control is a decoded control record.
type Control struct {
	KeyVersion   int16  `json:"key_version"`
	Type         int16  `json:"type"`
	What         string `json:"what"` // COMMIT, ABORT, or the name of the record's type
	ValueVersion int16  `json:"value_version"`
	// CoordinatorEpoch is that of the coordinator that ended a transaction.
	CoordinatorEpoch *int64        `json:"coordinator_epoch,omitempty"`
	Value            schema.Struct `json:"value"`
}

// Decoded is what a broker's own record says.
type Decoded struct {
	Key   *Message `json:"decoded_key"`
	Value *Message `json:"decoded_value"` // nil for a tombstone
}

// Message is a key or a value of one of the types in Kafka's schemas.
type Message struct {
	Type         string        `json:"type"`
	APIKey       *int16        `json:"api_key,omitempty"`       // of a record of the metadata log
	FrameVersion *int16        `json:"frame_version,omitempty"` // the same
	Version      int16         `json:"version"`                 // for a key: its type's number
	Data         schema.Struct `json:"data"`
}

// Text gives a text field of the message.
func (m *Message) Text(field string) string { return m.Data.Text(field) }

// Int gives a number field of the message.
func (m *Message) Int(field string) int64 { return m.Data.Int(field) }

// OffsetItem is an entry of an offset index: the batch that ends at Offset starts at Position.
type OffsetItem struct {
	place
	Entry          int   `json:"entry"`
	Offset         int64 `json:"offset"`
	RelativeOffset int32 `json:"relative_offset"`
	Position       int32 `json:"position"`
}

// TimeItem is an entry of a time index: up to the batch that ends at Offset no timestamp was greater, and it has that one.
type TimeItem struct {
	place
	Entry          int   `json:"entry"`
	Offset         int64 `json:"offset"`
	RelativeOffset int32 `json:"relative_offset"`
	Timestamp      int64 `json:"timestamp"`
}

// AbortedItem is an entry of a transaction index: an aborted transaction whose marker, at LastOffset, is in the segment.
type AbortedItem struct {
	place
	Entry            int   `json:"entry"`
	Version          int16 `json:"version"`
	ProducerID       int64 `json:"producer_id"`
	FirstOffset      int64 `json:"first_offset"`
	LastOffset       int64 `json:"last_offset"`
	LastStableOffset int64 `json:"last_stable_offset"`
}

// EndItem closes the entries of an index. RestBytes is what stands behind the last entry: zeros that Kafka keeps ready for more,
// or bytes that are no whole entry.
type EndItem struct {
	place
	Entries   int   `json:"entries"`
	FileBytes int64 `json:"file_bytes"`
	RestBytes int64 `json:"zero_bytes"`
}

// SnapshotItem is a snapshot of the producers' state.
type SnapshotItem struct {
	place
	Version int16         `json:"version"`
	CRCOK   bool          `json:"crc_ok"`
	Data    *SnapshotData `json:"data"`
	Error   string        `json:"error,omitempty"`
	// WindowBytes is the size of our own section behind Kafka's entries, with the batches before the last one: see txn/producer.
	WindowBytes int64 `json:"window_bytes,omitempty"`
}

// SnapshotData is Kafka's part of a snapshot.
type SnapshotData struct {
	CRC       uint32          `json:"crc"`
	Producers []ProducerEntry `json:"producer_entries"`
}

// ProducerEntry is one producer in a snapshot.
type ProducerEntry struct {
	ProducerID       int64 `json:"producer_id"`
	Epoch            int16 `json:"epoch"`
	LastSequence     int32 `json:"last_sequence"`
	LastOffset       int64 `json:"last_offset"`
	OffsetDelta      int32 `json:"offset_delta"`
	Timestamp        int64 `json:"timestamp"`
	CoordinatorEpoch int32 `json:"coordinator_epoch"`
	TxnFirstOffset   int64 `json:"current_txn_first_offset"`
}

// TextItem is a small text file.
type TextItem struct {
	place
	Text string `json:"text"`
}

// GarbageItem is bytes in a log file where a batch should start and none does. The walk of the file ends there.
type GarbageItem struct {
	place
	Position  int64  `json:"position"`
	Bytes     int64  `json:"bytes"`      // to the end of the file
	BatchSize int64  `json:"batch_size"` // what the length field claims, 0 when not even that is there
	Why       string `json:"why"`
}
