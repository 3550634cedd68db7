package metadata

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The record types of Kafka's metadata log that this package writes.
const (
	typeTopic       = 2
	typePartition   = 3
	typeConfig      = 4
	typeRemoveTopic = 9
	typeFeature     = 12
	typeProducerIDs = 15
)

// frameVersion opens every value of the metadata log.
const frameVersion = 1

// Resource types of a ConfigRecord.
const (
	topicResource  = 2
	brokerResource = 4
)

var errShort = errors.New("metadata record ends early")

// noDirectory is the reserved UUID 0-0-0-0-...-1 that Kafka's PartitionRecord
// calls an unassigned directory. A node with one data folder has no need to name
// it.
var noDirectory = ID{15: 1}

// encode appends the value of one metadata record: frame version, type and
// version as unsigned varints, then the message in flexible encoding.
func encode(dst []byte, c Change) []byte {
	switch c := c.(type) {
	case TopicChange:
		dst = head(dst, typeTopic, 0)
		dst = str(dst, c.Name)
		dst = append(dst, c.ID[:]...)
	case PartitionChange:
		dst = head(dst, typePartition, 1)
		dst = binary.BigEndian.AppendUint32(dst, uint32(c.Partition))
		dst = append(dst, c.TopicID[:]...)
		for range 2 { // replicas, in-sync replicas
			dst = binary.AppendUvarint(dst, 2)
			dst = binary.BigEndian.AppendUint32(dst, uint32(c.Leader))
		}
		dst = append(dst, 1, 1) // nothing removing, nothing adding
		dst = binary.BigEndian.AppendUint32(dst, uint32(c.Leader))
		dst = binary.BigEndian.AppendUint32(dst, uint32(c.LeaderEpoch))
		dst = binary.BigEndian.AppendUint32(dst, uint32(c.Epoch))
		dst = append(binary.AppendUvarint(dst, 2), noDirectory[:]...)
	case ConfigChange:
		dst = encodeConfig(dst, topicResource, c.Topic, c.Name, c.Value)
	case BrokerConfigChange:
		dst = encodeConfig(dst, brokerResource, c.Broker, c.Name, c.Value)
	case RemoveTopicChange:
		dst = head(dst, typeRemoveTopic, 0)
		dst = append(dst, c.ID[:]...)
	case FeatureChange:
		dst = head(dst, typeFeature, 0)
		dst = str(dst, c.Name)
		dst = binary.BigEndian.AppendUint16(dst, uint16(c.Level))
	case ProducerIDsChange:
		dst = head(dst, typeProducerIDs, 0)
		dst = binary.BigEndian.AppendUint32(dst, uint32(c.NodeID))
		dst = binary.BigEndian.AppendUint64(dst, ^uint64(0)) // broker epoch: not used on one node
		dst = binary.BigEndian.AppendUint64(dst, uint64(c.Next))
	}
	return append(dst, 0) // no tags
}

func encodeConfig(dst []byte, kind byte, resource, name string, value *string) []byte {
	dst = head(dst, typeConfig, 0)
	dst = append(dst, kind)
	dst = str(dst, resource)
	dst = str(dst, name)
	if value == nil {
		return append(dst, 0)
	}
	return str(dst, *value)
}

func head(dst []byte, kind, version uint64) []byte {
	dst = binary.AppendUvarint(dst, frameVersion)
	dst = binary.AppendUvarint(dst, kind)
	return binary.AppendUvarint(dst, version)
}

func str(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s))+1)
	return append(dst, s...)
}

// decode reads one value of the metadata log. A record type that this package
// does not know is an error: ignoring one could bring a deleted thing back.
func decode(value []byte) (Change, error) {
	r := &reader{src: value}
	if v := r.uvarint(); r.err == nil && v != frameVersion {
		return nil, fmt.Errorf("metadata record of frame version %d, this program knows %d", v, frameVersion)
	}
	kind, version := r.uvarint(), r.uvarint()
	var c Change
	switch {
	case r.err != nil:
	case kind == typeTopic && version == 0:
		c = TopicChange{Name: r.str(), ID: r.id()}
	case kind == typePartition && version <= 1:
		c = r.partition(version)
	case kind == typeConfig && version == 0:
		c = r.config()
	case kind == typeRemoveTopic && version == 0:
		c = RemoveTopicChange{ID: r.id()}
	case kind == typeFeature && version == 0:
		c = FeatureChange{Name: r.str(), Level: int16(r.u16())}
	case kind == typeProducerIDs && version == 0:
		node := int32(r.u32())
		r.u64()
		c = ProducerIDsChange{NodeID: node, Next: int64(r.u64())}
	default:
		return nil, fmt.Errorf("metadata record of type %d version %d is not known to this program", kind, version)
	}
	r.tags()
	if r.err != nil {
		return nil, fmt.Errorf("metadata record of type %d: %w", kind, r.err)
	}
	return c, nil
}

func (r *reader) partition(version uint64) Change {
	c := PartitionChange{Partition: int32(r.u32()), TopicID: r.id()}
	for range 4 {
		for n := r.length(4); n > 0; n-- {
			r.u32()
		}
	}
	c.Leader, c.LeaderEpoch, c.Epoch = int32(r.u32()), int32(r.u32()), int32(r.u32())
	if version >= 1 {
		for n := r.length(16); n > 0; n-- {
			r.id()
		}
	}
	return c
}

func (r *reader) config() Change {
	kind, resource, name := r.u8(), r.str(), r.str()
	var value *string
	if v, ok := r.nullable(); ok {
		value = &v
	}
	switch {
	case r.err != nil:
	case kind == topicResource:
		return ConfigChange{Topic: resource, Name: name, Value: value}
	case kind == brokerResource:
		return BrokerConfigChange{Broker: resource, Name: name, Value: value}
	default:
		r.err = fmt.Errorf("configuration of resource type %d, this program keeps only those of topics and brokers", kind)
	}
	return nil
}

// reader takes primitives off src. After the first error all results are zero.
type reader struct {
	src []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err == nil && (n < 0 || n > len(r.src)) {
		r.err = errShort
	}
	if r.err != nil {
		return nil
	}
	b := r.src[:n]
	r.src = r.src[n:]
	return b
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.src)
	if n <= 0 && r.err == nil {
		r.err = errShort
	}
	if r.err != nil {
		return 0
	}
	r.src = r.src[n:]
	return v
}

func (r *reader) u8() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) id() (id ID) {
	copy(id[:], r.take(len(id)))
	return id
}

// length reads a compact array's length; size is the least size of an element.
func (r *reader) length(size int) int {
	n := r.uvarint()
	if n == 0 {
		return 0
	}
	if n-1 > uint64(len(r.src)/size) {
		r.err = errShort
		return 0
	}
	return int(n - 1)
}

func (r *reader) str() string {
	s, _ := r.nullable()
	return s
}

func (r *reader) nullable() (string, bool) {
	n := r.uvarint()
	if n == 0 {
		return "", false
	}
	if n-1 > uint64(len(r.src)) {
		r.err = errShort
		return "", false
	}
	return string(r.take(int(n - 1))), r.err == nil
}

// tags skips tagged fields: a newer writer may have added some.
func (r *reader) tags() {
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		r.uvarint()
		size := r.uvarint()
		if size > uint64(len(r.src)) {
			r.err = errShort
			return
		}
		r.take(int(size))
	}
}
