package cases

import (
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var describeCases = []testCase{
	{"T58", "redpanda#11947, #11949, #15247", speak, describedExactly},
}

// describedExactly: the three requests of KIP-664 over a known set of states.
func describedExactly(tg *target) {
	topic := tg.topic("t", 2)
	before := time.Now().Add(-time.Second).UnixMilli()
	tg.txn(2, "empty").init()
	open := tg.txn(2, "open").init()
	open.timeout = 60000
	open.produce(topic, "a", "b")
	open.produce(topic, "c")
	done := tg.txn(2, "done").init()
	data := done.epoch
	done.produceTo(topic, 1, "d")
	done.commit()
	undone := tg.txn(1, "undone").init()
	undone.produceTo(topic, 1, "e")
	undone.abort()
	done.settled()
	undone.settled()

	p0 := tg.producers(topic, 0)
	if len(p0) != 1 {
		tg.Fatalf("partition 0 has %d producers, want the one that wrote", len(p0))
	}
	wantFields(tg, "an open transaction", p0[0], map[string]any{
		"ProducerID": open.pid, "ProducerEpoch": int32(open.epoch), "LastSequence": int32(2),
		"CoordinatorEpoch": int32(-1), "CurrentTxnStartOffset": int64(0),
	})
	for _, p := range tg.producers(topic, 1) {
		switch p.ProducerID {
		case done.pid: // the marker has the raised epoch, under which nothing was written
			wantFields(tg, "behind a marker of version 2", p, map[string]any{
				"ProducerEpoch": int32(data + 1), "LastSequence": int32(-1), "CurrentTxnStartOffset": int64(-1),
			})
		case undone.pid:
			wantFields(tg, "behind a marker of version 1", p, map[string]any{
				"ProducerEpoch": int32(undone.epoch), "LastSequence": int32(0), "CurrentTxnStartOffset": int64(-1),
			})
		default:
			tg.Fatalf("partition 1 has producer %d, which never wrote there", p.ProducerID)
		}
		marker := int64(0)
		for _, b := range tg.logOf(topic, 1) {
			if b.control() && b.ProducerID == p.ProducerID {
				marker = b.MaxTimestamp
			}
		}
		if p.LastTimestamp != marker || marker < before || p.CoordinatorEpoch < 0 {
			tg.Fatalf("producer %d: last timestamp %d, its marker has %d; coordinator epoch %d", p.ProducerID, p.LastTimestamp, marker, p.CoordinatorEpoch)
		}
	}

	d := tg.describe(open.id)
	wantFields(tg, "DescribeTransactions of an open one", d, map[string]any{
		"State": "Ongoing", "TimeoutMillis": int32(60000), "ProducerID": open.pid, "ProducerEpoch": open.epoch, "ErrorCode": int16(0),
	})
	if d.StartTimestamp < before || len(d.Topics) != 1 || d.Topics[0].Topic != topic || fmt.Sprint(d.Topics[0].Partitions) != "[0]" {
		tg.Fatalf("open transaction began at %d with %v", d.StartTimestamp, d.Topics)
	}
	d = tg.describe(tg.name("empty"))
	wantFields(tg, "one without a transaction", d, map[string]any{"State": "Empty", "StartTimestamp": int64(-1)})
	want(tg, "an id that nobody used", tg.describe(tg.name("nobody")).ErrorCode, kerr.TransactionalIDNotFound)
	listedExactly(tg, open.pid)
}

// listedExactly looks at ListTransactions and its filters.
func listedExactly(tg *target, open int64) {
	all := map[string]string{"empty": "Empty", "open": "Ongoing", "done": "CompleteCommit", "undone": "CompleteAbort"}
	only := func(names ...string) map[string]string {
		m := map[string]string{}
		for _, n := range names {
			m[n] = all[n]
		}
		return m
	}
	for _, c := range []struct {
		what   string
		change func(*kmsg.ListTransactionsRequest)
		want   map[string]string
	}{
		{"version 0", func(r *kmsg.ListTransactionsRequest) { r.Version = 0 }, all},
		{"version 1", func(r *kmsg.ListTransactionsRequest) { r.Version = 1 }, all},
		{"version 2", func(*kmsg.ListTransactionsRequest) {}, all},
		{"states", func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Ongoing", "CompleteAbort"} }, only("open", "undone")},
		{"a producer id", func(r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = []int64{open} }, only("open")},
		{"both", func(r *kmsg.ListTransactionsRequest) {
			r.StateFilters, r.ProducerIDFilters = []string{"Empty"}, []int64{open}
		}, only()},
		{"a state that none is in", func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Dead"} }, only()},
		{"older than an hour", func(r *kmsg.ListTransactionsRequest) { r.DurationFilterMillis = 3600000 }, only("empty")},
		{"a pattern", func(r *kmsg.ListTransactionsRequest) {
			r.TransactionalIDPattern = kmsg.StringPtr(tg.prefix + "-.*done")
		}, only("done", "undone")},
		{"a pattern that matches a part", func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = kmsg.StringPtr("done") }, only()},
		{"an empty pattern", func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = kmsg.StringPtr("") }, all},
	} {
		got, resp := tg.list(c.change)
		want(tg, "ListTransactions with "+c.what, resp.ErrorCode, nil)
		if !maps.Equal(got, c.want) {
			tg.Fatalf("ListTransactions with %s: %v, want %v", c.what, got, c.want)
		}
	}
	_, resp := tg.list(func(r *kmsg.ListTransactionsRequest) { r.StateFilters = []string{"Sleepy"} })
	if len(resp.TransactionStates) != 0 || fmt.Sprint(resp.UnknownStateFilters) != "[Sleepy]" {
		tg.Fatalf("an unknown state lists %d ids, and %v is unknown", len(resp.TransactionStates), resp.UnknownStateFilters)
	}
	_, resp = tg.list(func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = kmsg.StringPtr("(") })
	want(tg, "a pattern that is none", resp.ErrorCode, kerr.InvalidRegularExpression)
}

// wantFields compares the named fields of a row.
func wantFields(tg *target, what string, row any, fields map[string]any) {
	tg.Helper()
	v := reflect.ValueOf(row)
	for name, w := range fields {
		if got := v.FieldByName(name).Interface(); got != w {
			tg.Errorf("%s: %s is %v, want %v", what, name, got, w)
		}
	}
	if tg.Failed() {
		tg.FailNow()
	}
}
