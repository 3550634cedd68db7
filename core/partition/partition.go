// Package partition chooses the partition of a record by its key as Kafka's own clients do, so that a Go and a Java
// application that write to the same topic put the same key into the same partition, and a join of their topics finds it.
package partition

import "encoding/binary"

// ForKey is the partition of a key among n partitions: murmur2, made non-negative by dropping the sign, modulo n. n must be
// positive; the result of anything else is 0. A record without a key (nil) has no place of its own; the hash of nil is that
// of the empty key.
func ForKey(key []byte, n int32) int32 {
	if n <= 0 {
		return 0
	}
	return int32(Murmur2(key)&0x7fffffff) % n
}

// Murmur2 is the 32-bit MurmurHash2 with Kafka's seed, over little-endian words.
func Murmur2(key []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := uint32(seed) ^ uint32(len(key))
	for ; len(key) >= 4; key = key[4:] {
		k := binary.LittleEndian.Uint32(key) * m
		k = (k ^ k>>r) * m
		h = h*m ^ k
	}
	switch len(key) {
	case 3:
		h = (h ^ uint32(key[2])<<16 ^ uint32(key[1])<<8 ^ uint32(key[0])) * m
	case 2:
		h = (h ^ uint32(key[1])<<8 ^ uint32(key[0])) * m
	case 1:
		h = (h ^ uint32(key[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
