package crash

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// decided waits until no transaction is between its decision and its markers any more, without anybody asking for it.
func (s *story) decided(c cluster) error {
	w := dial(s.t, c)
	defer w.close()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		states, err := w.transactions(append([]string{"afterwards"}, s.ids...))
		if err == nil && !strings.Contains(states, "Prepare") {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("transactions stay undecided: %s %v", states, err)
		}
	}
}

// memory is what the coordinators and the partitions remember, as text.
func (s *story) memory(c cluster) (string, error) {
	w := dial(s.t, c)
	defer w.close()
	if err := s.decided(c); err != nil {
		return "", err
	}
	out, err := w.transactions(append([]string{"afterwards"}, s.ids...))
	if err != nil {
		return "", err
	}
	for _, name := range s.names() {
		for p := range int32(2) {
			at, err := w.committedOffset(name, p)
			if err != nil {
				return "", err
			}
			known, c := w.producers(name, p)
			out += fmt.Sprintf("%s-%d: offset %d, producers %s %s\n", name, p, at, known, code(c))
		}
	}
	return out, nil
}

// lookUps compares answers by offset and by time with what a reader of everything sees.
func (s *story) lookUps(c cluster, rng *rand.Rand) error {
	w := dial(s.t, c)
	defer w.close()
	k := &check{story: s, w: w}
	for _, name := range append(s.names(), "after") {
		for p := range int32(3) {
			end, c := w.offset(name, p, -1, false)
			if c != 0 { // not there, as others have judged
				continue
			}
			if err := k.lookUp(name, p, end, rng); err != nil {
				return fmt.Errorf("%s-%d: %w", name, p, err)
			}
		}
	}
	return nil
}

func (k *check) lookUp(name string, partition int32, end int64, rng *rand.Rand) error {
	start, _ := k.w.offset(name, partition, -2, false)
	var records []kept // of all batches, markers included
	var batches []stored
	for at := start; at < end; {
		row := k.w.fetch(name, partition, at, false)
		got := decode(row.RecordBatches)
		if row.ErrorCode != 0 || len(got) == 0 {
			return fmt.Errorf("fetch at %d of %d: %s, %d batches", at, end, code(row.ErrorCode), len(got))
		}
		for _, b := range got {
			batches, records = append(batches, b), append(records, b.records...)
			at = b.last() + 1
		}
	}
	records = slices.DeleteFunc(records, func(r kept) bool { return r.offset < start })
	for range 3 {
		if start < end {
			at := start + rng.Int64N(end-start)
			want := slices.IndexFunc(batches, func(b stored) bool { return b.last() >= at })
			got := decode(k.w.fetch(name, partition, at, false).RecordBatches)
			if len(got) == 0 || got[0].FirstOffset != batches[want].FirstOffset {
				return fmt.Errorf("a fetch at %d gives %d batches, want the one at %d first", at, len(got), batches[want].FirstOffset)
			}
		}
		if len(records) == 0 {
			continue
		}
		ts := records[rng.IntN(len(records))].timestamp + rng.Int64N(3) - 1
		want := int64(-1)
		if i := slices.IndexFunc(records, func(r kept) bool { return r.timestamp >= ts }); i >= 0 {
			want = records[i].offset
		}
		if at, c := k.w.offset(name, partition, ts, false); c != 0 || at != want {
			return fmt.Errorf("the first record at %d or later is %d, %s; want %d", ts, at, code(c), want)
		}
	}
	return nil
}

// transactions describes transactional ids, as text; those that nobody knows are left out.
func (w *wire) transactions(ids []string) (string, error) {
	w.t.Helper()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = ids
	out := ""
	for _, s := range w.do(req).(*kmsg.DescribeTransactionsResponse).TransactionStates {
		switch s.ErrorCode {
		case 0:
			out += fmt.Sprintf("%s: %s, producer %d epoch %d, %v\n", s.TransactionalID, s.State, s.ProducerID, s.ProducerEpoch, s.Topics)
		case 105: // TRANSACTIONAL_ID_NOT_FOUND
		default:
			return "", fmt.Errorf("DescribeTransactions of %q: %s", s.TransactionalID, code(s.ErrorCode))
		}
	}
	return out, nil
}

// producers describes the producers of a partition, as text, without their times.
func (w *wire) producers(topic string, partition int32) (string, int16) {
	w.t.Helper()
	req := kmsg.NewPtrDescribeProducersRequest()
	rt := kmsg.NewDescribeProducersRequestTopic()
	rt.Topic, rt.Partitions = topic, []int32{partition}
	req.Topics = append(req.Topics, rt)
	p := w.do(req).(*kmsg.DescribeProducersResponse).Topics[0].Partitions[0]
	var lines []string
	for _, a := range p.ActiveProducers {
		lines = append(lines, fmt.Sprintf("%d/%d seq %d open %d", a.ProducerID, a.ProducerEpoch, a.LastSequence, a.CurrentTxnStartOffset))
	}
	slices.Sort(lines)
	return fmt.Sprint(lines), p.ErrorCode
}

// configure sets settings of a topic, of the form name=value.
func (w *wire) configure(topic string, settings ...string) int16 {
	w.t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version = 1
	rr := kmsg.NewIncrementalAlterConfigsRequestResource()
	rr.ResourceType, rr.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	for _, s := range settings {
		name, value, _ := strings.Cut(s, "=")
		rc := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		rc.Name, rc.Value = name, &value
		rr.Configs = append(rr.Configs, rc)
	}
	req.Resources = append(req.Resources, rr)
	return w.do(req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode
}

// produced reads the answer to a produce request of version 9 that was sent before.
func (w *wire) produced() (base int64, err error) {
	req := kmsg.NewPtrProduceRequest()
	req.Version = 9
	resp, err := w.receive(req)
	if err != nil {
		return -1, err
	}
	row := resp.(*kmsg.ProduceResponse).Topics[0].Partitions[0]
	if row.ErrorCode != 0 {
		return -1, fmt.Errorf("%s", code(row.ErrorCode))
	}
	return row.BaseOffset, nil
}

// knows tells whether the broker answers requests of a kind.
func (w *wire) knows(key kmsg.Key) bool {
	w.t.Helper()
	for _, k := range w.do(kmsg.NewPtrApiVersionsRequest()).(*kmsg.ApiVersionsResponse).ApiKeys {
		if k.ApiKey == key.Int16() {
			return true
		}
	}
	return false
}
