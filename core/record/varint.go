package record

import "math/bits"

// Records use zigzag varints: int32 fields in at most 5 bytes, int64 fields in at most 10.

// uvarint reads a varint of at most maxLen bytes at p[i:]. It gives the index behind it, or -1 if the number does not
// end in time or p ends first. Bits beyond 64 are refused, not dropped.
func uvarint(p []byte, i, maxLen int) (v uint64, next int) {
	for shift := uint(0); maxLen > 0; maxLen-- {
		if i >= len(p) {
			return 0, -1
		}
		c := p[i]
		i++
		if c < 0x80 {
			if shift == 63 && c > 1 {
				return 0, -1
			}
			return v | uint64(c)<<shift, i
		}
		v |= uint64(c&0x7f) << shift
		shift += 7
	}
	return 0, -1
}

// varint32 reads an int32. Numbers of one and two bytes, nearly all that records have, take the short way.
func varint32(p []byte, i int) (int32, int) {
	if uint(i) < uint(len(p)) {
		c := int32(p[i])
		if c < 0x80 {
			return c>>1 ^ -(c & 1), i + 1
		}
		if uint(i+1) < uint(len(p)) && p[i+1] < 0x80 {
			c = c&0x7f | int32(p[i+1])<<7
			return c>>1 ^ -(c & 1), i + 2
		}
	}
	return longVarint32(p, i)
}

func longVarint32(p []byte, i int) (int32, int) {
	u, next := uvarint(p, i, 5)
	if next < 0 || u > 1<<32-1 {
		return 0, -1
	}
	return int32(uint32(u)>>1) ^ -int32(u&1), next
}

func varint64(p []byte, i int) (int64, int) {
	u, next := uvarint(p, i, 10)
	return int64(u>>1) ^ -int64(u&1), next
}

func appendVarint(dst []byte, v int64) []byte {
	u := uint64(v)<<1 ^ uint64(v>>63)
	for u >= 0x80 {
		dst = append(dst, byte(u)|0x80)
		u >>= 7
	}
	return append(dst, byte(u))
}

// varintSize is how many bytes appendVarint takes.
func varintSize(v int64) int {
	u := uint64(v)<<1 ^ uint64(v>>63)
	return (bits.Len64(u|1) + 6) / 7
}
