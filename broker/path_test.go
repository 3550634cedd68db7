package broker_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/core/record"
)

// pipe sends one prepared request after another on one connection and allocates
// nothing itself.
type pipe struct {
	conn net.Conn
	head [4]byte
	buf  []byte
}

func openPipe(tb testing.TB, b *broker.Broker) *pipe {
	tb.Helper()
	c, err := net.Dial("tcp", b.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return &pipe{conn: c, buf: make([]byte, 0, 4<<20)}
}

func (p *pipe) roundTrip(request []byte) ([]byte, error) {
	if _, err := p.conn.Write(request); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(p.conn, p.head[:]); err != nil {
		return nil, err
	}
	b := p.buf[:binary.BigEndian.Uint32(p.head[:])]
	_, err := io.ReadFull(p.conn, b)
	return b, err
}

func format(req kmsg.Request) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("bench")).AppendRequest(nil, req, 1)
}

func manyRecords(n, size int) []byte {
	var b record.Builder
	value := []byte(strings.Repeat("v", size))
	for range n {
		b.Append(time.Now().UnixMilli(), nil, value, nil)
	}
	batch, err := b.Batch()
	if err != nil {
		panic(err)
	}
	return append([]byte(nil), batch...)
}

func createTopic(tb testing.TB, b *broker.Broker, name string, partitions int32) {
	tb.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 6, 5000
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = name, partitions, 1
	req.Topics = append(req.Topics, rt)
	body, err := openPipe(tb, b).roundTrip(format(req))
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	if err == nil {
		err = decodeAnswer(resp, body)
	}
	if err != nil || resp.Topics[0].ErrorCode != 0 {
		tb.Fatalf("create %s: %+v, %v", name, resp.Topics, err)
	}
}

func fetchRequest(topic string, partition int32, offset int64, maxBytes int32) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.ReplicaID, req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.SessionEpoch = 11, -1, 500, 1, 50<<20, -1
	rt := kmsg.NewFetchRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewFetchRequestTopicPartition()
	rp.Partition, rp.FetchOffset, rp.PartitionMaxBytes, rp.CurrentLeaderEpoch = partition, offset, maxBytes, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return req
}

// What a request allocates must not depend on how many records it moves.
func TestNoAllocationPerRecord(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP(), brokertest.InFolder(t.TempDir()))
	createTopic(t, b, "few", 1)
	createTopic(t, b, "many", 1)
	const few, many = 10, 5000
	requests := map[string][2][]byte{
		"produce acks=1":   {format(produceRequest(9, 1, "few", 0, manyRecords(few, 50))), format(produceRequest(9, 1, "many", 0, manyRecords(many, 50)))},
		"produce acks=all": {format(produceRequest(9, -1, "few", 0, manyRecords(few, 50))), format(produceRequest(9, -1, "many", 0, manyRecords(many, 50)))},
		"fetch":            {format(fetchRequest("few", 0, 0, 1000)), format(fetchRequest("many", 0, 0, 400_000))},
	}
	p := openPipe(t, b)
	for _, name := range []string{"produce acks=1", "produce acks=all", "fetch"} {
		var allocs [2]float64
		for i, request := range requests[name] {
			run := func() {
				if _, err := p.roundTrip(request); err != nil {
					t.Fatal(err)
				}
			}
			for range 20 { // pools and files warm up
				run()
			}
			allocs[i] = testing.AllocsPerRun(200, run)
		}
		t.Logf("%s: %.0f allocations for %d records, %.0f for %d", name, allocs[0], few, allocs[1], many)
		if allocs[1] > allocs[0]+20 {
			t.Errorf("%s: %.0f allocations for %d records, %.0f for %d", name, allocs[0], few, allocs[1], many)
		}
	}
}

// TestFetchReturnsWhatWasProduced compares bytes: large sections by sendfile,
// small ones by copy.
func TestFetchReturnsWhatWasProduced(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP(), brokertest.InFolder(t.TempDir()))
	createTopic(t, b, "t", 1)
	p := openPipe(t, b)
	var want []byte
	for i, n := range []int{1, 10, 1000, 8000, 3} {
		batch := manyRecords(n, 100+i)
		base := produce(t, b, "t", 0, append([]byte(nil), batch...))
		record.Batch(batch).SetBaseOffset(base)
		record.Batch(batch).SetLeaderEpoch(0)
		want = append(want, batch...)
	}
	body, err := p.roundTrip(format(fetchRequest("t", 0, 0, 10<<20)))
	if err != nil {
		t.Fatal(err)
	}
	req := fetchRequest("t", 0, 0, 0)
	resp := req.ResponseKind().(*kmsg.FetchResponse)
	if err := decodeAnswer(resp, body); err != nil {
		t.Fatal(err)
	}
	got := resp.Topics[0].Partitions[0]
	if got.ErrorCode != 0 || string(got.RecordBatches) != string(want) {
		t.Errorf("error %d, %d bytes, want %d", got.ErrorCode, len(got.RecordBatches), len(want))
	}
	if got.HighWatermark != 9014 || got.LastStableOffset != 9014 {
		t.Errorf("high watermark %d, last stable offset %d, want 9014", got.HighWatermark, got.LastStableOffset)
	}
}

func benchProduce(b *testing.B, acks int16, records, size, clients int) {
	br := brokertest.Start(b, brokertest.OnTCP(), brokertest.InFolder(b.TempDir()))
	createTopic(b, br, "t", 4)
	batch := manyRecords(records, size)
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	var requests [4][]byte
	for i := range requests {
		requests[i] = format(produceRequest(9, acks, "t", int32(i), batch))
	}
	jobs := make(chan struct{}, b.N)
	for range b.N {
		jobs <- struct{}{}
	}
	close(jobs)
	done := make(chan error, clients)
	b.ResetTimer()
	for i := range clients {
		p := openPipe(b, br)
		go func() {
			for range jobs {
				if _, err := p.roundTrip(requests[i%4]); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range clients {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProduceSynced1(b *testing.B)    { benchProduce(b, -1, 1, 100, 1) }
func BenchmarkProduceSynced32(b *testing.B)   { benchProduce(b, -1, 1, 100, 32) }
func BenchmarkProduceWritten(b *testing.B)    { benchProduce(b, 1, 1, 100, 1) }
func BenchmarkProduceBatches100(b *testing.B) { benchProduce(b, 1, 1000, 100, 4) }

func BenchmarkFetch(b *testing.B) {
	br := brokertest.Start(b, brokertest.OnTCP(), brokertest.InFolder(b.TempDir()))
	createTopic(b, br, "t", 1)
	p := openPipe(b, br)
	for range 20 {
		if _, err := p.roundTrip(format(produceRequest(9, -1, "t", 0, manyRecords(1000, 1000)))); err != nil {
			b.Fatal(err)
		}
	}
	request := format(fetchRequest("t", 0, 0, 1<<20))
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		body, err := p.roundTrip(request)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}
