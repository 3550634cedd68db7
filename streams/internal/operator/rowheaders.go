package operator

import (
	"encoding/binary"
	"errors"

	"github.com/millrace/millrace/streams/internal/task"
)

// heldBack is a row of a buffer, taken apart.
type heldBack struct {
	dueMs, timeMs int64
	flags         byte
	headers       []task.Header
	old, value    []byte
}

var errHeld = errors.New("a row is no update that was held back")

// appendHeaders writes the number of headers, then each with its lengths; a null
// value has none.
func appendHeaders(dst []byte, headers []task.Header) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(headers)))
	for _, h := range headers {
		dst = append(binary.AppendUvarint(dst, uint64(len(h.Key))), h.Key...)
		if h.Value == nil {
			dst = append(dst, 0)
			continue
		}
		dst = append(binary.AppendUvarint(append(dst, 1), uint64(len(h.Value))), h.Value...)
	}
	return dst
}

func splitHeaders(b []byte) (headers []task.Header, rest []byte, ok bool) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, nil, false
	}
	b = b[n:]
	for range count {
		var key, value []byte
		if key, b, ok = cutBytes(b); !ok || len(b) == 0 {
			return nil, nil, false
		}
		has := b[0] == 1
		if b = b[1:]; has {
			if value, b, ok = cutBytes(b); !ok {
				return nil, nil, false
			}
			value = append([]byte{}, value...)
		}
		headers = append(headers, task.Header{Key: string(key), Value: value})
	}
	return headers, b, true
}

// cutBytes takes bytes with their length in front off.
func cutBytes(b []byte) (x, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}
