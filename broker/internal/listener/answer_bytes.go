package listener

import "encoding/binary"

// AppendTo appends the answer as a peer receives it, length field included, for
// callers that drive a service without a connection. The answer stays theirs to
// release.
func (a *Answer) AppendTo(dst []byte) ([]byte, error) {
	start, from := len(dst), 0
	for _, c := range a.cuts {
		dst = append(dst, a.Buf[from:c.at]...)
		from = c.at
		at := len(dst)
		dst = append(dst, make([]byte, c.sec.Len)...)
		if err := readSection(c.sec.File, dst[at:], c.sec.Offset); err != nil {
			return dst[:start], err
		}
	}
	dst = append(dst, a.Buf[from:]...)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst, nil
}
