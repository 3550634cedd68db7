package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// twoPhaseVersion is the first version of InitProducerId with the fields of KIP-939.
const twoPhaseVersion = 6

// InitProducerIDRequest is InitProducerId, versions 0 to 6.
type InitProducerIDRequest struct {
	kmsg.InitProducerIDRequest
	// Enable2PC says that the client's transactions take part in a two-phase commit, so
	// that they have no timeout. Version 6.
	Enable2PC bool
	// KeepPreparedTxn asks to leave an open transaction open. Version 6.
	KeepPreparedTxn bool
}

// InitProducerIDResponse is the answer.
type InitProducerIDResponse struct {
	kmsg.InitProducerIDResponse
	// OngoingTxnProducerID and OngoingTxnProducerEpoch are those with which the kept
	// transaction began, -1 when nothing was open. Version 6.
	OngoingTxnProducerID    int64
	OngoingTxnProducerEpoch int16
}

// NewInitProducerIDRequest makes a request of a client that has no producer id yet.
func NewInitProducerIDRequest() *InitProducerIDRequest {
	return &InitProducerIDRequest{InitProducerIDRequest: kmsg.NewInitProducerIDRequest()}
}

// AllowInitProducerID6 adds the version to those that a client may use.
func AllowInitProducerID6(v *kversion.Versions) *kversion.Versions {
	v.SetMaxKeyVersion(int16(kmsg.InitProducerID), twoPhaseVersion)
	return v
}

// MaxVersion is 6.
func (*InitProducerIDRequest) MaxVersion() int16 { return twoPhaseVersion }

// ResponseKind makes an empty answer of the same version.
func (r *InitProducerIDRequest) ResponseKind() kmsg.Response {
	resp := &InitProducerIDResponse{InitProducerIDResponse: kmsg.NewInitProducerIDResponse(), OngoingTxnProducerID: -1, OngoingTxnProducerEpoch: -1}
	resp.Version = r.Version
	return resp
}

// UnsafeReadFrom is ReadFrom; kmsg's own would not read version 6.
func (r *InitProducerIDRequest) UnsafeReadFrom(src []byte) error { return r.ReadFrom(src) }

// RequestWith sends the request to the client's choice of broker, which is right only for a client that has this transactional
// id, or none.
func (r *InitProducerIDRequest) RequestWith(ctx context.Context, to kmsg.Requestor) (*InitProducerIDResponse, error) {
	resp, err := to.Request(ctx, r)
	if err != nil {
		return nil, err
	}
	return resp.(*InitProducerIDResponse), nil
}

// AppendTo appends the message.
func (r *InitProducerIDRequest) AppendTo(dst []byte) []byte {
	if r.Version < twoPhaseVersion {
		return r.InitProducerIDRequest.AppendTo(dst)
	}
	if r.TransactionalID == nil {
		dst = append(dst, 0)
	} else {
		dst = binary.AppendUvarint(dst, uint64(len(*r.TransactionalID))+1)
		dst = append(dst, *r.TransactionalID...)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.TransactionTimeoutMillis))
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.ProducerID))
	dst = binary.BigEndian.AppendUint16(dst, uint16(r.ProducerEpoch))
	dst = appendBool(dst, r.Enable2PC)
	dst = appendBool(dst, r.KeepPreparedTxn)
	return append(dst, 0) // no tagged fields
}

// ReadFrom reads the message; the string is copied.
func (r *InitProducerIDRequest) ReadFrom(src []byte) error {
	r.Enable2PC, r.KeepPreparedTxn = false, false
	if r.Version < twoPhaseVersion {
		return r.InitProducerIDRequest.ReadFrom(src)
	}
	d := reader{src: src}
	r.TransactionalID = d.nullableString()
	r.TransactionTimeoutMillis = int32(d.number(4))
	r.ProducerID = int64(d.number(8))
	r.ProducerEpoch = int16(d.number(2))
	r.Enable2PC = d.number(1) != 0
	r.KeepPreparedTxn = d.number(1) != 0
	return d.end("InitProducerId request")
}

// AppendTo appends the message.
func (r *InitProducerIDResponse) AppendTo(dst []byte) []byte {
	if r.Version < twoPhaseVersion {
		return r.InitProducerIDResponse.AppendTo(dst)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.ThrottleMillis))
	dst = binary.BigEndian.AppendUint16(dst, uint16(r.ErrorCode))
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.ProducerID))
	dst = binary.BigEndian.AppendUint16(dst, uint16(r.ProducerEpoch))
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.OngoingTxnProducerID))
	dst = binary.BigEndian.AppendUint16(dst, uint16(r.OngoingTxnProducerEpoch))
	return append(dst, 0) // no tagged fields
}

// ReadFrom reads the message.
func (r *InitProducerIDResponse) ReadFrom(src []byte) error {
	r.OngoingTxnProducerID, r.OngoingTxnProducerEpoch = -1, -1
	if r.Version < twoPhaseVersion {
		return r.InitProducerIDResponse.ReadFrom(src)
	}
	d := reader{src: src}
	r.ThrottleMillis = int32(d.number(4))
	r.ErrorCode = int16(d.number(2))
	r.ProducerID = int64(d.number(8))
	r.ProducerEpoch = int16(d.number(2))
	r.OngoingTxnProducerID = int64(d.number(8))
	r.OngoingTxnProducerEpoch = int16(d.number(2))
	return d.end("InitProducerId response")
}

// MaxVersion is 6.
func (*InitProducerIDResponse) MaxVersion() int16 { return twoPhaseVersion }

// UnsafeReadFrom is ReadFrom; kmsg's own would not read version 6.
func (r *InitProducerIDResponse) UnsafeReadFrom(src []byte) error { return r.ReadFrom(src) }

// RequestKind makes an empty request of the same version.
func (r *InitProducerIDResponse) RequestKind() kmsg.Request {
	req := NewInitProducerIDRequest()
	req.Version = r.Version
	return req
}

// errShort says that a message ends before its last field.
var errShort = errors.New("message ends too early")

// reader takes fields of the flexible encoding off a message. After the first error
// everything is zero.
type reader struct {
	src []byte
	bad bool
}

// number reads a big-endian number of n bytes, at most 8; its sign is the caller's.
func (d *reader) number(n int) (v uint64) {
	if d.bad || len(d.src) < n {
		d.bad = true
		return 0
	}
	for _, b := range d.src[:n] {
		v = v<<8 | uint64(b)
	}
	d.src = d.src[n:]
	return v
}

func (d *reader) uvarint() uint64 {
	v, n := binary.Uvarint(d.src)
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.src = d.src[n:]
	return v
}

func (d *reader) nullableString() *string {
	n := d.uvarint()
	if d.bad || n == 0 {
		return nil
	}
	if n-1 > uint64(len(d.src)) {
		d.bad = true
		return nil
	}
	s := string(d.src[:n-1])
	d.src = d.src[n-1:]
	return &s
}

// end passes over tagged fields, of which the message has none that is known. What
// stands behind them is no fault, as in kmsg.
func (d *reader) end(what string) error {
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		d.uvarint()
		size := d.uvarint()
		if size > uint64(len(d.src)) {
			d.bad = true
			break
		}
		d.src = d.src[size:]
	}
	if d.bad {
		return fmt.Errorf("%s version %d: %w", what, twoPhaseVersion, errShort)
	}
	return nil
}

func appendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}
