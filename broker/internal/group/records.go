package group

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Record types of `__consumer_offsets`: the int16 that a key begins with. Others
// belong to other kinds of groups.
const (
	keyOffsetOld = 0 // written before Kafka 0.9, same fields as keyOffset
	keyOffset    = 1
	keyMetadata  = 2
)

// Versions of the values, as Kafka 4.4 writes them. A commit with an own expiry
// is written in version 1, the only one that has a field for it.
const (
	offsetValueVersion       = 4
	offsetValueExpireVersion = 1
	metadataValueVersion     = 3

	newestOffsetValue   = 4
	newestMetadataValue = 4
)

var errRecord = errors.New("group: undecodable record")

// appendOffsetKey appends the key of a committed offset.
func appendOffsetKey(dst []byte, group string, p partition) []byte {
	k := kmsg.OffsetCommitKey{Version: keyOffset, Group: group, Topic: p.topic, Partition: p.index}
	return k.AppendTo(dst)
}

// appendOffsetValue appends the value of a committed offset.
func appendOffsetValue(dst []byte, c *committed) []byte {
	v := kmsg.OffsetCommitValue{
		Version:         offsetValueVersion,
		Offset:          c.offset,
		LeaderEpoch:     c.leaderEpoch,
		Metadata:        c.metadata,
		CommitTimestamp: c.commitMs,
		TopicID:         c.topicID,
	}
	if c.expireMs >= 0 {
		v.Version, v.ExpireTimestamp = offsetValueExpireVersion, c.expireMs
	}
	return v.AppendTo(dst)
}

// appendMetadataKey appends the key of a group's metadata.
func appendMetadataKey(dst []byte, group string) []byte {
	k := kmsg.GroupMetadataKey{Version: keyMetadata, Group: group}
	return k.AppendTo(dst)
}

// keyType reads which kind of record a key is of.
func keyType(key []byte) (int16, error) {
	if len(key) < 2 {
		return 0, fmt.Errorf("%w: key of %d bytes", errRecord, len(key))
	}
	return int16(binary.BigEndian.Uint16(key)), nil
}

// splitOffsetKey reads the key of a committed offset. The two names alias it.
func splitOffsetKey(key []byte) (group, topic []byte, index int32, err error) {
	rest := key[2:]
	for _, field := range []*[]byte{&group, &topic} {
		if len(rest) < 2 {
			return nil, nil, 0, fmt.Errorf("%w: offset key %x is cut short", errRecord, key)
		}
		n := int(int16(binary.BigEndian.Uint16(rest)))
		if n < 0 || n > len(rest)-2 {
			return nil, nil, 0, fmt.Errorf("%w: offset key %x has a string of length %d", errRecord, key, n)
		}
		*field, rest = rest[2:2+n], rest[2+n:]
	}
	if len(rest) != 4 {
		return nil, nil, 0, fmt.Errorf("%w: offset key %x has %d bytes for its partition", errRecord, key, len(rest))
	}
	return group, topic, int32(binary.BigEndian.Uint32(rest)), nil
}

// readOffsetValue reads the value of a committed offset. Nothing in it aliases
// the value.
func readOffsetValue(value []byte) (committed, error) {
	if err := newest(value, newestOffsetValue); err != nil {
		return committed{}, err
	}
	var v kmsg.OffsetCommitValue
	v.LeaderEpoch = -1
	if err := v.ReadFrom(value); err != nil {
		return committed{}, fmt.Errorf("%w: offset value of version %d: %w", errRecord, v.Version, err)
	}
	c := committed{
		offset:      v.Offset,
		leaderEpoch: -1,
		metadata:    v.Metadata,
		commitMs:    v.CommitTimestamp,
		expireMs:    -1,
		topicID:     v.TopicID,
	}
	if v.Version >= 3 {
		c.leaderEpoch = v.LeaderEpoch
	}
	if v.Version == offsetValueExpireVersion {
		c.expireMs = v.ExpireTimestamp
	}
	return c, nil
}

// readMetadata reads a group's metadata.
func readMetadata(key, value []byte) (id string, v *kmsg.GroupMetadataValue, err error) {
	var k kmsg.GroupMetadataKey
	if err := k.ReadFrom(key); err != nil {
		return "", nil, fmt.Errorf("%w: group key %x: %w", errRecord, key, err)
	}
	if value == nil {
		return k.Group, nil, nil
	}
	if err := newest(value, newestMetadataValue); err != nil {
		return "", nil, err
	}
	v = new(kmsg.GroupMetadataValue)
	if err := v.ReadFrom(value); err != nil {
		return "", nil, fmt.Errorf("%w: metadata of group %q: %w", errRecord, k.Group, err)
	}
	return k.Group, v, nil
}

// newest refuses values of versions that did not exist when this was written:
// their fields could be anything.
func newest(value []byte, known int16) error {
	if len(value) < 2 {
		return fmt.Errorf("%w: value of %d bytes", errRecord, len(value))
	}
	if v := int16(binary.BigEndian.Uint16(value)); v < 0 || v > known {
		return fmt.Errorf("%w: value of version %d, known are 0 to %d", errRecord, v, known)
	}
	return nil
}
