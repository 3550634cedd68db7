package protobuf

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// message is a message of a schema with those inside of it, in the order in
// which a record's path counts them. The root is the file and has no name.
type message struct {
	name   string // full
	nested []*message
}

// joined is the full name of a name inside of another.
func joined(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// path are the indexes that lead to a message, nil if it is not there.
func (m *message) path(name string) []int {
	for i, n := range m.nested {
		if n.name == name {
			return []int{i}
		}
		if below := n.path(name); below != nil {
			return append([]int{i}, below...)
		}
	}
	return nil
}

// appendPath writes a path as Confluent's serializers do: how many indexes and
// each of them, zigzag; the most frequent, the first message alone, is one zero.
func appendPath(dst []byte, path []int) []byte {
	if len(path) == 1 && path[0] == 0 {
		return append(dst, 0)
	}
	dst = binary.AppendVarint(dst, int64(len(path)))
	for _, i := range path {
		dst = binary.AppendVarint(dst, int64(i))
	}
	return dst
}

var errPath = errors.New("protobuf: the path of the message in front of the record is cut off")

// follow reads a path and goes there.
func (m *message) follow(b []byte) (*message, []byte, error) {
	n, used := binary.Varint(b)
	if used <= 0 {
		return nil, nil, errPath
	}
	b = b[used:]
	if n == 0 {
		at, err := m.child(0)
		return at, b, err
	}
	if n < 0 || n > int64(len(b)) {
		return nil, nil, fmt.Errorf("protobuf: the path of the message in front of the record has %d steps", n)
	}
	at := m
	for range n {
		i, used := binary.Varint(b)
		if used <= 0 {
			return nil, nil, errPath
		}
		b = b[used:]
		var err error
		if at, err = at.child(i); err != nil {
			return nil, nil, err
		}
	}
	return at, b, nil
}

func (m *message) child(i int64) (*message, error) {
	if i >= 0 && i < int64(len(m.nested)) {
		return m.nested[i], nil
	}
	where := m.name
	if where == "" {
		where = "the schema"
	}
	return nil, fmt.Errorf("protobuf: the record is message number %d of %s, which has %d", i, where, len(m.nested))
}
