package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The bytes of version 6 are those that the classes of kafka-clients 4.4.0 write
// (InitProducerIdRequestData and InitProducerIdResponseData).
func TestVersion6AsKafka(t *testing.T) {
	id := "orders"
	req := NewInitProducerIDRequest()
	req.Version = 6
	req.TransactionalID, req.TransactionTimeoutMillis = &id, 60000
	req.ProducerID, req.ProducerEpoch = 4711, 12
	req.Enable2PC, req.KeepPreparedTxn = true, true
	const wantReq = "076f72646572730000ea600000000000001267000c010100"
	if got := hex.EncodeToString(req.AppendTo(nil)); got != wantReq {
		t.Errorf("request: %s, Kafka's %s", got, wantReq)
	}
	resp := req.ResponseKind().(*InitProducerIDResponse)
	resp.ThrottleMillis, resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = 5, 51, 4711, 13
	resp.OngoingTxnProducerID, resp.OngoingTxnProducerEpoch = 4710, 32766
	const wantResp = "0000000500330000000000001267000d00000000000012667ffe00"
	if got := hex.EncodeToString(resp.AppendTo(nil)); got != wantResp {
		t.Errorf("response: %s, Kafka's %s", got, wantResp)
	}
	again, respAgain := NewInitProducerIDRequest(), resp.RequestKind().ResponseKind()
	again.Version = 6
	if err := again.ReadFrom(req.AppendTo(nil)); err != nil || !reflect.DeepEqual(again, req) {
		t.Errorf("request read again: %+v, %v", again, err)
	}
	if err := respAgain.ReadFrom(resp.AppendTo(nil)); err != nil || !reflect.DeepEqual(respAgain, kmsg.Response(resp)) {
		t.Errorf("response read again: %+v, %v", respAgain, err)
	}
}

func TestNullIDAndTags(t *testing.T) {
	req := NewInitProducerIDRequest()
	req.Version = 6
	b := req.AppendTo(nil)
	if b[0] != 0 {
		t.Errorf("a null id is written as %x", b[0])
	}
	b = append(b[:len(b)-1], 1, 9, 2, 'x', 'y') // a tag of a later version
	if err := req.ReadFrom(b); err != nil || req.TransactionalID != nil || req.ProducerID != -1 {
		t.Errorf("with a tag: %+v, %v", req, err)
	}
	b[len(b)-3] = 3 // it runs past the end
	if err := req.ReadFrom(b); !errors.Is(err, errShort) {
		t.Errorf("a tag that is too long: %v", err)
	}
}

func TestShortMessages(t *testing.T) {
	id := "orders"
	req := NewInitProducerIDRequest()
	req.Version, req.TransactionalID = 6, &id
	whole := req.AppendTo(nil)
	for n := range whole {
		if err := req.ReadFrom(whole[:n]); !errors.Is(err, errShort) {
			t.Errorf("request of %d bytes: %v", n, err)
		}
	}
	resp := req.ResponseKind().(*InitProducerIDResponse)
	whole = resp.AppendTo(nil)
	for n := range whole {
		if err := resp.ReadFrom(whole[:n]); !errors.Is(err, errShort) {
			t.Errorf("response of %d bytes: %v", n, err)
		}
	}
}

// TestOlderVersionsAreKmsgs: up to 5 the library's own bytes.
func TestOlderVersionsAreKmsgs(t *testing.T) {
	id := "orders"
	for v := int16(0); v <= 5; v++ {
		ours, theirs := NewInitProducerIDRequest(), kmsg.NewPtrInitProducerIDRequest()
		ours.TransactionalID, theirs.TransactionalID = &id, &id
		ours.SetVersion(v)
		theirs.SetVersion(v)
		if !bytes.Equal(ours.AppendTo(nil), theirs.AppendTo(nil)) {
			t.Errorf("request version %d differs", v)
		}
		or, tr := ours.ResponseKind(), theirs.ResponseKind()
		if !bytes.Equal(or.AppendTo(nil), tr.AppendTo(nil)) || or.GetVersion() != v {
			t.Errorf("response version %d differs", v)
		}
		if err := or.ReadFrom(tr.AppendTo(nil)); err != nil {
			t.Error(err)
		}
	}
}
