package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace/millrace/broker/inspect/internal/schema"
)

// ErrUnknownType says that a record is of a type that the table of schemas does not have.
var ErrUnknownType = errors.New("unknown type of record")

var errTooShort = errors.New("it ends before its version")

// modules are the topics whose records have a key that tells the type.
var modules = map[string]string{offsetsTopic: schema.Groups, txnTopic: schema.Transactions, shareTopic: schema.Share}

// decodes tells whether Decode knows the records of a topic.
func decodes(topic string) bool { return modules[topic] != "" || topic == metadataTopic }

// Decode reads a record of a topic that brokers write themselves. What could be read is in d even when err is not nil.
func Decode(topic string, key, value []byte) (d *Decoded, err error) {
	if topic == metadataTopic {
		return decodeFramed(value)
	}
	d = &Decoded{}
	if len(key) < 2 {
		return d, fmt.Errorf("key of %d bytes: %w", len(key), errTooShort)
	}
	number := int16(binary.BigEndian.Uint16(key))
	s := schema.KeyOf(modules[topic], number)
	if s == nil {
		return d, fmt.Errorf("key: %w: %d", ErrUnknownType, number)
	}
	data, rest, err := s.Decode(0, key[2:])
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes are left behind the key", len(rest))
	}
	if err != nil {
		return d, err
	}
	d.Key = &Message{Type: s.Name, Version: number, Data: data}
	if value == nil {
		return d, nil
	}
	d.Value, err = decodeValue(schema.ValueOf(modules[topic], number), value)
	return d, err
}

// decodeValue reads a value that begins with its version.
func decodeValue(s *schema.Schema, value []byte) (*Message, error) {
	if len(value) < 2 {
		return nil, fmt.Errorf("value of %d bytes: %w", len(value), errTooShort)
	}
	version := int16(binary.BigEndian.Uint16(value))
	data, rest, err := s.Decode(version, value[2:])
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes are left behind the value", len(rest))
	}
	if err != nil {
		return nil, err
	}
	return &Message{Type: s.Name, Version: version, Data: explain(s.Name, data)}, nil
}

// txnStates are the states of a transactional id by their number in the log.
var txnStates = []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"}

// explain says in a value what its numbers and opaque bytes mean.
func explain(typ string, data schema.Struct) schema.Struct {
	switch typ {
	case "TransactionLogValue":
		return nameState(data)
	case "GroupMetadataValue":
		if data.Text("protocol_type") == "consumer" {
			expandMembers(data)
		}
	}
	return data
}

// nameState gives the state of a transactional id its name; the number stays under another one.
func nameState(data schema.Struct) schema.Struct {
	const field = "transaction_status"
	n := data.Int(field)
	if n < 0 || n >= int64(len(txnStates)) {
		return data
	}
	data.Set(field, txnStates[n])
	return append(data, schema.Field{Name: "_" + field, Value: n})
}

// expandMembers shows what the members of a consumer group have subscribed to and been assigned. That is theirs, not the
// broker's: bytes that do not parse stay bytes.
func expandMembers(data schema.Struct) {
	members, _ := data.Get("members").([]any)
	for _, m := range members {
		member, _ := m.(schema.Struct)
		for field, layout := range map[string]string{"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"} {
			raw, _ := member.Get(field).(schema.Bytes)
			if len(raw) < 2 {
				continue
			}
			version := int16(binary.BigEndian.Uint16(raw))
			if v, _, err := schema.Named(layout).Decode(version, raw[2:]); err == nil {
				member.Set(field, append(schema.Struct{{Name: "_raw", Value: raw}, {Name: "_version", Value: int64(version)}}, v...))
			}
		}
	}
}

// decodeFramed reads a record of the metadata log: version of the frame, type and version as varints, then the record.
func decodeFramed(value []byte) (*Decoded, error) {
	d := &Decoded{}
	var head [3]int16
	rest := value
	for i := range head {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > 1<<15-1 {
			return d, fmt.Errorf("frame of %d bytes: %w", len(value), errTooShort)
		}
		head[i], rest = int16(n), rest[size:]
	}
	if head[0] != 1 {
		return d, fmt.Errorf("frame of version %d, known is 1", head[0])
	}
	s := schema.RecordOf(schema.Metadata, head[1])
	if s == nil {
		return d, fmt.Errorf("value: %w: %d", ErrUnknownType, head[1])
	}
	data, rest, err := s.Decode(head[2], rest)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes are left behind the record", len(rest))
	}
	if err != nil {
		return d, err
	}
	d.Value = &Message{Type: s.Name, APIKey: &head[1], FrameVersion: &head[0], Version: head[2], Data: data}
	return d, nil
}

// controlTypes are the schemas of the values of control records that belong to the metadata log, by type.
var controlTypes = map[int16]string{
	2: "LeaderChangeMessage", 3: "SnapshotHeaderRecord", 4: "SnapshotFooterRecord", 5: "KRaftVersionRecord", 6: "VotersRecord",
}

// decodeControl reads a control record.
func decodeControl(key, value []byte) (*Control, error) {
	if len(key) < 4 || len(value) < 2 {
		return nil, fmt.Errorf("control record with a key of %d bytes and a value of %d", len(key), len(value))
	}
	c := &Control{
		KeyVersion: int16(binary.BigEndian.Uint16(key)), Type: int16(binary.BigEndian.Uint16(key[2:])),
		ValueVersion: int16(binary.BigEndian.Uint16(value)),
	}
	var err error
	switch name := controlTypes[c.Type]; {
	case c.Type == 0 || c.Type == 1:
		c.What = [...]string{"ABORT", "COMMIT"}[c.Type]
		c.Value, _, err = schema.Named("EndTxnMarker").Decode(c.ValueVersion, value[2:])
		epoch := c.Value.Int("coordinator_epoch")
		c.CoordinatorEpoch = &epoch
	case name != "":
		c.What = name
		c.Value, _, err = schema.Named(name).Decode(c.ValueVersion, value)
	default:
		err = fmt.Errorf("control record: %w: %d", ErrUnknownType, c.Type)
	}
	return c, err
}
