package assign

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// version is the first byte of the user data. A member that meets a higher one
// refuses to balance: the application is being upgraded member by member, and
// an older leader must not guess. Version 1 knew no copies; its members gave up
// nothing before a rebalance was over, so the two cannot be mixed.
const version = 2

// ErrVersion reports user data of another release.
var ErrVersion = errors.New("assign: other version")

// Encode writes a claim as user data.
func (c Claim) Encode() []byte {
	b := binary.AppendVarint([]byte{version}, int64(c.Generation))
	b = appendUnits(b, c.Units)
	b = binary.AppendUvarint(b, uint64(len(c.Copies)))
	for _, x := range c.Copies {
		b = binary.AppendVarint(binary.AppendVarint(b, int64(x.Unit)), x.Lag)
	}
	for _, s := range []string{c.Process, c.Rack, c.Addr} {
		b = appendText(b, s)
	}
	return b
}

// Decode reads what Encode wrote.
func Decode(b []byte) (Claim, error) {
	d := open(b)
	c := Claim{Generation: d.number(), Units: d.units()}
	for range d.count() {
		c.Copies = append(c.Copies, Copy{Unit: d.number(), Lag: d.varint()})
	}
	c.Process, c.Rack, c.Addr = d.text(), d.text(), d.text()
	return c, d.close()
}

// Encode writes a share as user data.
func (s Share) Encode() []byte {
	b := []byte{version}
	for _, units := range [][]int32{s.Units, s.Standbys, s.Warm} {
		b = appendUnits(b, units)
	}
	b = binary.AppendVarint(b, s.Close)
	b = binary.AppendUvarint(b, uint64(len(s.Map.Addrs)))
	for _, a := range s.Map.Addrs {
		b = appendText(b, a)
	}
	b = appendUnits(b, s.Map.Runs)
	b = binary.AppendUvarint(b, uint64(len(s.Map.Keeps)))
	for _, k := range s.Map.Keeps {
		b = appendUnits(b, k)
	}
	return b
}

// DecodeShare reads what Share.Encode wrote.
func DecodeShare(b []byte) (Share, error) {
	d := open(b)
	s := Share{Units: d.units(), Standbys: d.units(), Warm: d.units(), Close: d.varint()}
	for range d.count() {
		s.Map.Addrs = append(s.Map.Addrs, d.text())
	}
	s.Map.Runs = d.units()
	for range d.count() {
		s.Map.Keeps = append(s.Map.Keeps, d.units())
	}
	return s, d.close()
}

func appendUnits(b []byte, units []int32) []byte {
	b = binary.AppendUvarint(b, uint64(len(units)))
	for _, u := range units {
		b = binary.AppendVarint(b, int64(u))
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads user data; its first error stays.
type decoder struct {
	rest []byte
	err  error
}

func open(b []byte) *decoder {
	switch {
	case len(b) == 0:
		return &decoder{err: errors.New("assign: no user data")}
	case b[0] != version:
		return &decoder{err: fmt.Errorf("%w: %d, this release speaks %d", ErrVersion, b[0], version)}
	}
	return &decoder{rest: b[1:]}
}

var errShort = errors.New("assign: user data ends early")

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.rest, d.err = nil, firstOf(d.err, errShort)
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) number() int32 {
	v := d.varint()
	if int64(int32(v)) != v {
		d.err = firstOf(d.err, fmt.Errorf("assign: %d is no number of a unit", v))
	}
	return int32(v)
}

// count reads how many items follow, each of at least a byte.
func (d *decoder) count() int {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > uint64(len(d.rest)-n) {
		d.rest, d.err = nil, firstOf(d.err, errShort)
		return 0
	}
	d.rest = d.rest[n:]
	return int(v)
}

func (d *decoder) units() []int32 {
	var units []int32
	for range d.count() {
		units = append(units, d.number())
	}
	return units
}

func (d *decoder) text() string {
	n := d.count()
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) close() error {
	if d.err == nil && len(d.rest) > 0 {
		return fmt.Errorf("assign: %d bytes too many in user data", len(d.rest))
	}
	return d.err
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
