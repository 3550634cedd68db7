package record

import "encoding/binary"

// minRecordSize is the least length field that Kafka lets stand for a batch of any format, before it looks at the format.
const minRecordSize = 14

// Single takes the one batch out of the records of a Produce request for one partition. Like Kafka it drops what stands
// behind the batch if that is no whole batch. Errors are [*Error] with the code that Kafka answers: INVALID_RECORD without
// a whole batch, with a second one, or with the message sets of formats 0 and 1; CORRUPT_MESSAGE for a length or a format
// that nothing can have.
func Single(records []byte) (Batch, error) {
	b, rest, e := split(records)
	if e != nil {
		return nil, e
	}
	if b == nil {
		return nil, refuse(CodeInvalidRecord, "the %d bytes of records hold no whole batch", len(records))
	}
	if b.Magic() != 2 {
		return nil, refuse(CodeInvalidRecord, "the records have format %d, only format 2 is taken", b.Magic())
	}
	if len(b) < HeaderSize {
		return nil, refuse(CodeCorruptMessage, "a batch of %d bytes is shorter than its header of %d", len(b), HeaderSize)
	}
	second, _, e := split(rest)
	if e != nil {
		return nil, e
	}
	if second != nil {
		return nil, refuse(CodeInvalidRecord, "the records hold more than one batch; a request holds one for each partition")
	}
	return b, nil
}

// split takes off the first batch of any format; a nil batch when buf ends before it does.
func split(buf []byte) (Batch, []byte, *Error) {
	if len(buf) < overhead {
		return nil, nil, nil
	}
	n := int32(binary.BigEndian.Uint32(buf[atLength:]))
	if n < minRecordSize {
		return nil, nil, refuse(CodeCorruptMessage, "the batch's length field is %d, at least %d is needed", n, minRecordSize)
	}
	if len(buf) <= atMagic {
		return nil, nil, nil
	}
	if magic := int8(buf[atMagic]); magic < 0 || magic > 2 {
		return nil, nil, refuse(CodeCorruptMessage, "the batch has format %d, which does not exist", magic)
	}
	size := int(n) + overhead
	if len(buf) < size {
		return nil, nil, nil
	}
	return Batch(buf[:size:size]), buf[size:], nil
}
