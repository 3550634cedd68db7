package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/s2"
)

// Snappy comes in two shapes. Kafka's Java clients, and the broker's own files, frame it as snappy-java does ("xerial"): a
// header of 16 bytes (magic, version, least compatible version), then chunks, each a length and one raw snappy block of at
// most 32 KiB of data. librdkafka and others send one raw block. Readers have to take both; what is written here is framed.

// xerialMagic is how a framed payload starts. No raw block does: read as one, the first two bytes are its length and the
// third begins with a copy, before there is anything to copy.
var xerialMagic = [8]byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const (
	xerialHeader = 16
	xerialChunk  = 32 << 10 // what snappy-java writes per chunk
)

func unsnappy(dst, src []byte, limit int) ([]byte, error) {
	if !bytes.HasPrefix(src, xerialMagic[:]) {
		return unsnappyBlock(dst, src, limit)
	}
	if len(src) < xerialHeader {
		return dst, io.ErrUnexpectedEOF
	}
	for src = src[xerialHeader:]; len(src) > 0; {
		// snappy-java joins streams, so another header may stand where a chunk could.
		if bytes.HasPrefix(src, xerialMagic[:]) && len(src) >= xerialHeader {
			src = src[xerialHeader:]
			continue
		}
		if len(src) < 4 {
			return dst, io.ErrUnexpectedEOF
		}
		n := binary.BigEndian.Uint32(src)
		if uint64(n) > uint64(len(src)-4) {
			return dst, io.ErrUnexpectedEOF
		}
		var err error
		if dst, err = unsnappyBlock(dst, src[4:4+n], limit); err != nil {
			return dst, err
		}
		src = src[4+n:]
	}
	return dst, nil
}

// maxSnappyRatio bounds what a raw block can hold: its shortest copy makes 64 bytes from 2 or 3.
const maxSnappyRatio = 64

// unsnappyBlock appends one raw block. It is read by the plain decoder, not by that of S2, whose extensions other clients
// cannot read. The length that the block claims is checked against the limit and against what a
// block of its size can hold, before memory is taken for it.
func unsnappyBlock(dst, src []byte, limit int) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return dst, err
	}
	if n > limit-len(dst) {
		return dst, tooLarge(limit)
	}
	if n > len(src)*maxSnappyRatio {
		return dst, fmt.Errorf("record: a snappy block of %d bytes claims to hold %d", len(src), n)
	}
	at := len(dst)
	if cap(dst)-at < n {
		dst = append(dst, make([]byte, n)...)
	}
	dst = dst[:at+n]
	if _, err = snappy.Decode(dst[at:at+n:at+n], src); err != nil {
		return dst[:at], err
	}
	return dst, nil
}

// snappyFramed appends src in snappy-java's framing.
func snappyFramed(dst, src []byte) []byte {
	dst = append(dst, xerialMagic[:]...)
	dst = append(dst, 0, 0, 0, 1, 0, 0, 0, 1)
	for len(src) > 0 {
		chunk := src[:min(len(src), xerialChunk)]
		src = src[len(chunk):]
		at := len(dst)
		need := 4 + s2.MaxEncodedLen(len(chunk))
		if cap(dst)-at < need {
			dst = append(dst, make([]byte, need)...)
		}
		block := s2.EncodeSnappy(dst[at+4:at+need], chunk)
		binary.BigEndian.PutUint32(dst[at:at+4], uint32(len(block)))
		dst = dst[:at+4+len(block)]
	}
	return dst
}
