package api

import (
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/txn/wire"
)

// TestTransactionsAskTheHook: each request of a transaction is refused by the hook alone,
// before the coordinator (here nil) is asked.
func TestTransactionsAskTheHook(t *testing.T) {
	txnID := "x"
	for name, c := range map[string]struct {
		version int16
		req     kmsg.Request
		handle  Handler
		allow   kmsg.ACLResourceType // everything of this type is allowed
		want    int16
	}{
		"InitProducerId with an id": {5, initProducer(&txnID, false), handleInitProducerID,
			kmsg.ACLResourceTypeCluster, kerr.TransactionalIDAuthorizationFailed.Code},
		"InitProducerId without": {5, initProducer(nil, false), handleInitProducerID,
			kmsg.ACLResourceTypeTransactionalId, kerr.ClusterAuthorizationFailed.Code},
		"AddPartitionsToTxn by a client": {3, &kmsg.AddPartitionsToTxnRequest{
			TransactionalID: txnID, Topics: []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "t", Partitions: []int32{0}}},
		}, handleAddPartitionsToTxn, kmsg.ACLResourceTypeTopic, kerr.TransactionalIDAuthorizationFailed.Code},
		"AddPartitionsToTxn by a broker": {5, &kmsg.AddPartitionsToTxnRequest{
			Transactions: []kmsg.AddPartitionsToTxnRequestTransaction{{TransactionalID: txnID}},
		}, handleAddPartitionsToTxn, kmsg.ACLResourceTypeTransactionalId, kerr.ClusterAuthorizationFailed.Code},
		"AddOffsetsToTxn, id": {4, &kmsg.AddOffsetsToTxnRequest{TransactionalID: txnID, Group: "g"}, handleAddOffsetsToTxn,
			kmsg.ACLResourceTypeGroup, kerr.TransactionalIDAuthorizationFailed.Code},
		"AddOffsetsToTxn, group": {4, &kmsg.AddOffsetsToTxnRequest{TransactionalID: txnID, Group: "g"}, handleAddOffsetsToTxn,
			kmsg.ACLResourceTypeTransactionalId, kerr.GroupAuthorizationFailed.Code},
		"EndTxn": {5, &kmsg.EndTxnRequest{TransactionalID: txnID}, handleEndTxn,
			kmsg.ACLResourceTypeCluster, kerr.TransactionalIDAuthorizationFailed.Code},
		"WriteTxnMarkers": {2, &kmsg.WriteTxnMarkersRequest{Markers: []kmsg.WriteTxnMarkersRequestMarker{{
			Topics: []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: "t", Partitions: []int32{0}}},
		}}}, handleWriteTxnMarkers, kmsg.ACLResourceTypeTransactionalId, kerr.ClusterAuthorizationFailed.Code},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Server{Authorize: func(_ string, _ kmsg.ACLOperation, kind kmsg.ACLResourceType, _ string) bool { return kind == c.allow }}
			c.req.SetVersion(c.version)
			var got []int16
			c.handle(s, &Call{Key: c.req.Key(), Version: c.version, Req: c.req}, func(r kmsg.Response) {
				r.SetVersion(c.version)
				got = codes(reflect.ValueOf(r).Elem())
			})
			if len(got) != 1 || got[0] != c.want {
				t.Fatalf("codes %v, want %d", got, c.want)
			}
		})
	}
}

// codes finds all error codes of a response that are not 0.
func codes(v reflect.Value) []int16 {
	var out []int16
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case v.Type().Field(i).Name == "ErrorCode" && f.Int() != 0:
			out = append(out, int16(f.Int()))
		case v.Type().Field(i).Anonymous:
			out = append(out, codes(f)...)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			for k := range f.Len() {
				out = append(out, codes(f.Index(k))...)
			}
		}
	}
	return out
}

func initProducer(id *string, twoPhase bool) *wire.InitProducerIDRequest {
	req := wire.NewInitProducerIDRequest()
	req.TransactionalID, req.Enable2PC = id, twoPhase
	return req
}

// TestTwoPhaseCommitIsAskedFor: WRITE on a transactional id is not enough to begin transactions that no clock ends.
func TestTwoPhaseCommitIsAskedFor(t *testing.T) {
	txnID := "orders"
	var asked []string
	s := &Server{Authorize: func(_ string, op kmsg.ACLOperation, kind kmsg.ACLResourceType, name string) bool {
		asked = append(asked, OperationName(op)+" on "+kind.String()+" "+name)
		return op == kmsg.ACLOperationWrite
	}}
	var code int16
	handleInitProducerID(s, &Call{Version: 6, Req: initProducer(&txnID, true)}, func(r kmsg.Response) {
		code = r.(*wire.InitProducerIDResponse).ErrorCode
	})
	want := []string{"WRITE on TRANSACTIONAL_ID orders", "TWO_PHASE_COMMIT on TRANSACTIONAL_ID orders"}
	if code != kerr.TransactionalIDAuthorizationFailed.Code || !slices.Equal(asked, want) {
		t.Errorf("code %d after %q, want TRANSACTIONAL_ID_AUTHORIZATION_FAILED after %q", code, asked, want)
	}
}
