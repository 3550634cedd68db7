package coord

import (
	"math"
	"unicode/utf16"
)

// PartitionFor is the partition, out of n, of the coordinator of a group or a
// transactional id: Java's String.hashCode, as every Kafka broker does it, so that
// a log keeps its meaning when it moves from one to the other.
func PartitionFor(key string, n int32) int32 {
	var h int32
	for _, r := range key {
		if hi, lo := utf16.EncodeRune(r); hi != '�' {
			h = 31*(31*h+int32(hi)) + int32(lo)
			continue
		}
		h = 31*h + int32(r)
	}
	if h == math.MinInt32 { // has no positive twin; Kafka takes 0
		return 0
	}
	if h < 0 {
		h = -h
	}
	return h % n
}
