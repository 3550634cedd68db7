package state

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// ReadCache keeps what was read from images on disk, for all stores of a process
// within one number of bytes: rows, and that there is none. A read from it costs a
// tenth of a microsecond and no allocation, one from goleveldb several and a dozen.
//
// It is made of shards, each with two generations. What is read goes into the young
// one; when that is full it becomes the old one, whose rows are forgotten; a row that
// is read from the old one moves back into the young. So rows go about in the order
// in which they were last read, and the memory is a few large buffers in which the
// garbage collector finds nothing to look at. It is safe for concurrent use.
type ReadCache struct {
	seed   maphash.Seed
	images atomic.Uint32
	shards [cacheShards]cacheShard
}

const (
	cacheShards = 16
	cacheHead   = 12 // of an entry: image, length of key, length of value + 1 (0: no row)
	cacheIndex  = 32 // what an entry costs in the index of its generation
)

type cacheShard struct {
	mu         sync.Mutex
	limit      int // of one generation, in bytes
	young, old generation
}

// generation is a buffer of entries and where each begins, by hash.
type generation struct {
	at  map[uint64]uint32
	buf []byte
}

func (g *generation) size() int { return len(g.buf) + len(g.at)*cacheIndex }

// MinReadCache is the smallest size of a cache.
const MinReadCache = 256 << 10

// NewReadCache makes a cache of so many bytes, at least MinReadCache. It takes
// memory as it fills.
func NewReadCache(bytes int) (*ReadCache, error) {
	if bytes < MinReadCache || bytes > 1<<36 {
		return nil, fmt.Errorf("state: a read cache of %d bytes, must be between %d and %d", bytes, MinReadCache, 1<<36)
	}
	c := &ReadCache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].limit = bytes / cacheShards / 2
		c.shards[i].young.at, c.shards[i].old.at = map[uint64]uint32{}, map[uint64]uint32{}
	}
	return c, nil
}

// Over puts the cache in front of an image, whose only user it is from then on.
func (c *ReadCache) Over(image Image) Image {
	return &cachedImage{Image: image, cache: c, id: c.images.Add(1), val: []byte{}}
}

// cachedImage is an image with the cache in front. Like any image it belongs to one
// task.
type cachedImage struct {
	Image
	cache *ReadCache
	id    uint32 // no other image has it, of the past included
	val   []byte
}

// Get implements Image.
func (i *cachedImage) Get(key []byte) ([]byte, bool, error) {
	s, hash := i.cache.shard(i.id, key)
	val, ok, known := s.get(hash, i.id, key, i.val[:0])
	if known {
		i.val = val
		return val, ok, nil
	}
	v, ok, err := i.Image.Get(key)
	if err != nil {
		return nil, false, err
	}
	s.put(hash, i.id, key, v, ok)
	return v, ok, nil
}

// Apply implements Image. Rows that are in the cache are renewed there; others do not
// come in by being written.
func (i *cachedImage) Apply(rows []Row, pos Position) error {
	if err := i.Image.Apply(rows, pos); err != nil {
		i.id = i.cache.images.Add(1) // whatever the image holds now
		return err
	}
	for _, r := range rows {
		s, hash := i.cache.shard(i.id, r.Key)
		s.renew(hash, i.id, r)
	}
	return nil
}

// Wipe implements Image.
func (i *cachedImage) Wipe() error {
	i.id = i.cache.images.Add(1)
	return i.Image.Wipe()
}

// Close implements Image.
func (i *cachedImage) Close() error {
	i.id = i.cache.images.Add(1)
	return i.Image.Close()
}

func (c *ReadCache) shard(image uint32, key []byte) (*cacheShard, uint64) {
	hash := maphash.Bytes(c.seed, key) + uint64(image)*0x9e3779b97f4a7c15
	return &c.shards[hash>>60], hash
}

// get appends the value of a key to dst. known says whether the cache knows.
func (s *cacheShard) get(hash uint64, image uint32, key, dst []byte) (val []byte, ok, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok, known := s.young.find(hash, image, key)
	if known {
		return append(dst, v...), ok, true
	}
	if v, ok, known = s.old.find(hash, image, key); !known {
		return dst, false, false
	}
	dst = append(dst, v...)
	delete(s.old.at, hash)
	s.add(hash, image, key, dst, ok)
	return dst, ok, true
}

// put takes in what the image said.
func (s *cacheShard) put(hash uint64, image uint32, key, val []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.old.at, hash)
	s.add(hash, image, key, val, ok)
}

// renew replaces a row that is there.
func (s *cacheShard) renew(hash uint64, image uint32, r Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, young := s.young.at[hash]
	_, old := s.old.at[hash]
	if !young && !old {
		return
	}
	delete(s.old.at, hash)
	if at, ok := s.young.same(hash, image, r); ok {
		copy(s.young.buf[at:], r.Value)
		return
	}
	delete(s.young.at, hash)
	s.add(hash, image, r.Key, r.Value, r.Value != nil)
}

// add writes an entry into the young generation.
func (s *cacheShard) add(hash uint64, image uint32, key, val []byte, ok bool) {
	size := cacheHead + len(key) + len(val)
	if size > s.limit/8 {
		delete(s.young.at, hash)
		return
	}
	if s.young.size()+size+cacheIndex > s.limit {
		s.young, s.old = s.old, s.young
		clear(s.young.at)
		s.young.buf = s.young.buf[:0]
	}
	g := &s.young
	g.at[hash] = uint32(len(g.buf))
	g.grow(size, s.limit)
	length := uint32(0)
	if ok {
		length = uint32(len(val)) + 1
	}
	g.buf = binary.LittleEndian.AppendUint32(g.buf, image)
	g.buf = binary.LittleEndian.AppendUint32(g.buf, uint32(len(key)))
	g.buf = binary.LittleEndian.AppendUint32(g.buf, length)
	g.buf = append(append(g.buf, key...), val...)
}

// grow makes room, doubling up to the limit and not beyond.
func (g *generation) grow(n, limit int) {
	if len(g.buf)+n <= cap(g.buf) {
		return
	}
	buf := make([]byte, len(g.buf), min(max(2*cap(g.buf), len(g.buf)+n, 4<<10), limit))
	copy(buf, g.buf)
	g.buf = buf
}

// find looks an entry up; what it returns is valid under the shard's lock.
func (g *generation) find(hash uint64, image uint32, key []byte) (val []byte, ok, known bool) {
	at, found := g.at[hash]
	if !found {
		return nil, false, false
	}
	e := g.buf[at:]
	n, length := binary.LittleEndian.Uint32(e[4:]), binary.LittleEndian.Uint32(e[8:])
	if binary.LittleEndian.Uint32(e) != image || string(e[cacheHead:cacheHead+n]) != string(key) {
		return nil, false, false
	}
	if length == 0 {
		return nil, false, true
	}
	val = e[cacheHead+n : cacheHead+n+length-1]
	return val, true, true
}

// same finds the place of a row's value, if it has that row with a value as long.
func (g *generation) same(hash uint64, image uint32, r Row) (at uint32, ok bool) {
	val, ok, _ := g.find(hash, image, r.Key)
	if !ok || r.Value == nil || len(val) != len(r.Value) {
		return 0, false
	}
	return g.at[hash] + cacheHead + uint32(len(r.Key)), true
}
