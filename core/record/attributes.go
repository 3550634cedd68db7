package record

import "fmt"

// Codec is how the records of a batch are compressed: the low three bits of its attributes.
type Codec int8

// The codecs of format 2. Other values that three bits can hold belong to no codec.
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)

var codecNames = [...]string{None: "none", Gzip: "gzip", Snappy: "snappy", LZ4: "lz4", Zstd: "zstd"}

// String is the name that compression.type knows the codec by.
func (c Codec) String() string {
	if c.valid() {
		return codecNames[c]
	}
	return fmt.Sprintf("codec(%d)", int8(c))
}

func (c Codec) valid() bool { return c >= None && c <= Zstd }

// ParseCodec is the codec of a name: none (or uncompressed), gzip, snappy, lz4, zstd.
func ParseCodec(name string) (Codec, error) {
	if name == "uncompressed" {
		return None, nil
	}
	for c, n := range codecNames {
		if n == name {
			return Codec(c), nil
		}
	}
	return 0, fmt.Errorf("record: no codec is called %q; there are none, gzip, snappy, lz4 and zstd", name)
}

// Attributes are the flags of a batch. Bits 7 to 15 have no meaning yet.
type Attributes uint16

const (
	codecMask        Attributes = 7
	logAppendTimeBit Attributes = 1 << 3
	transactionalBit Attributes = 1 << 4
	controlBit       Attributes = 1 << 5
	deleteHorizonBit Attributes = 1 << 6
)

// Codec is how the records are compressed. It may be a value that no codec has: see [Batch.Validate].
func (a Attributes) Codec() Codec { return Codec(a & codecMask) }

// LogAppendTime tells that the records' time is the broker's: the batch's MaxTimestamp, for each of them.
func (a Attributes) LogAppendTime() bool { return a&logAppendTimeBit != 0 }

// Transactional tells that the batch belongs to a transaction of its producer; true for markers also.
func (a Attributes) Transactional() bool { return a&transactionalBit != 0 }

// Control tells that the batch holds one control record (a marker), which only a broker may write.
func (a Attributes) Control() bool { return a&controlBit != 0 }

// DeleteHorizon tells that BaseTimestamp is the time from which the batch's tombstones and markers may go.
func (a Attributes) DeleteHorizon() bool { return a&deleteHorizonBit != 0 }

// settled is a without the bits that only a broker may set on data: the kind of time, and the delete horizon, which
// would turn a producer's base timestamp into a date from which its tombstones may go.
func (a Attributes) settled() Attributes { return a &^ (logAppendTimeBit | deleteHorizonBit) }
