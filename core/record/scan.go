package record

// raw is one record as it lies in the payload: nothing is copied, headers are only delimited.
type raw struct {
	timeDelta   int64
	offsetDelta int32
	headerCount int32
	key, value  []byte // nil is null
	headers     []byte // headerCount of them, checked
}

// Reasons that scan gives. They are constants so that a hostile batch costs no formatting per record.
const (
	badLength      = "its length is no number or negative"
	pastEnd        = "its length reaches beyond the end of the batch"
	badAttributes  = "it ends before its attributes"
	badTimeDelta   = "its timestamp delta is no number"
	badOffsetDelta = "its offset delta is no number"
	badKey         = "its key's length is no number, below -1, or beyond the record"
	badValue       = "its value's length is no number, below -1, or beyond the record"
	badHeaderCount = "its number of headers is no number or negative"
	badHeader      = "a header does not parse or reaches beyond the record"
	badTail        = "bytes are left behind its last header"
)

// scan reads the record at p[i:] and gives the index behind it, or a reason why that is no record. All lengths are checked
// against the record's own, which is checked against p: whatever p holds, scan neither panics nor allocates.
func scan(p []byte, i int, r *raw) (next int, reason string) {
	n, i := varint32(p, i)
	if i < 0 || n < 0 {
		return 0, badLength
	}
	if int(n) > len(p)-i {
		return 0, pastEnd
	}
	end := i + int(n)
	p = p[:end]
	if i >= end {
		return 0, badAttributes
	}
	i++ // the record's attributes have no meaning yet and are ignored, as in Kafka
	if i < end && p[i] < 0x80 {
		r.timeDelta = int64(p[i]>>1) ^ -int64(p[i]&1)
		i++
	} else if r.timeDelta, i = varint64(p, i); i < 0 {
		return 0, badTimeDelta
	}
	if r.offsetDelta, i = varint32(p, i); i < 0 {
		return 0, badOffsetDelta
	}
	if r.key, i = nullable(p, i); i < 0 {
		return 0, badKey
	}
	if r.value, i = nullable(p, i); i < 0 {
		return 0, badValue
	}
	if i == end-1 && p[i] == 0 { // no headers, as most records
		r.headerCount, r.headers = 0, nil
		return end, ""
	}
	if r.headerCount, i = varint32(p, i); i < 0 || r.headerCount < 0 {
		return 0, badHeaderCount
	}
	r.headers = p[i:]
	return scanHeaders(p, i, r.headerCount)
}

// scanHeaders walks n headers, which must end where p ends.
func scanHeaders(p []byte, i int, n int32) (next int, reason string) {
	for ; n > 0; n-- {
		if i = skipHeader(p, i); i < 0 {
			return 0, badHeader
		}
	}
	if i != len(p) {
		return 0, badTail
	}
	return i, ""
}

func skipHeader(p []byte, i int) int {
	key, i := nullable(p, i)
	if i < 0 || key == nil { // a header's name is never null
		return -1
	}
	_, i = nullable(p, i)
	return i
}

// nullable reads a length and that many bytes; length -1 is null. The slice's capacity ends with it, so that appending to
// it cannot write into the batch.
func nullable(p []byte, i int) ([]byte, int) {
	if uint(i) < uint(len(p)) && p[i]&0x81 == 0 { // short, as most keys
		i++
		if j := i + int(p[i-1]>>1); j <= len(p) {
			return p[i:j:j], j
		}
		return nil, -1
	}
	n, i := varint32(p, i)
	if i < 0 {
		return nil, -1
	}
	if n < 0 {
		if n != -1 {
			return nil, -1
		}
		return nil, i
	}
	if int(n) > len(p)-i {
		return nil, -1
	}
	j := i + int(n)
	return p[i:j:j], j
}
