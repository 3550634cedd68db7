package crash

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/brokertest"
)

// tcp dials the broker's socket.
type tcp struct{ addr string }

func (c tcp) Seeds() []string { return []string{c.addr} }
func (c tcp) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, addr)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCrowd surrounds a working producer with connections that do nothing, that stop in the middle of a frame, that claim a
// frame of 99 MiB, and that ask for megabytes and never read an answer, while topics with writers are deleted. The
// producer is served, memory stays bounded, and nothing is left after Close.
func TestCrowd(t *testing.T) {
	idle := 200
	if soak() {
		idle = 2000
	}
	goroutines := runtime.NumGoroutine()
	b := brokertest.Start(t, brokertest.OnTCP(), small, quiet)
	c := tcp{b.Addr().String()}
	w := dial(t, c)
	w.must("create", func() int16 { return w.createTopic("t", 1) })
	big := strings.Repeat("x", 900<<10)
	for range 8 {
		if row := w.produce(9, "", "t", 0, batch(-1, -1, -1, false, big)); row.ErrorCode != 0 {
			t.Fatal(code(row.ErrorCode))
		}
	}
	before := heap()
	var crowd []*wire
	add := func(frame []byte) {
		x := dial(t, c)
		if err := x.send(frame); err != nil {
			t.Fatal(err)
		}
		crowd = append(crowd, x)
	}
	for range idle {
		add(nil)
	}
	fetch := w.frame(fetchRequest("t", 0, 0, false))
	for range 20 {
		add(fetch[:len(fetch)/2])
		add(binary.BigEndian.AppendUint32(nil, 99<<20))
	}
	for range 20 { // 40 answers of 1 MiB each that nobody reads
		var many []byte
		for range 40 {
			many = append(many, fetch...)
		}
		add(many)
	}
	var writers sync.WaitGroup
	for n := range 4 {
		writers.Go(func() {
			if err := writeAndDelete(t, c, fmt.Sprintf("gone%d", n)); err != nil {
				t.Error(err)
			}
		})
	}
	for range 50 {
		if row := w.produce(9, "", "t", 0, batch(-1, -1, -1, false, "v")); row.ErrorCode != 0 {
			t.Fatal(code(row.ErrorCode))
		}
	}
	writers.Wait()
	grown := int64(heap()) - int64(before)
	t.Logf("%d connections hold %d KiB", len(crowd), grown>>10)
	if limit := int64(64<<20 + len(crowd)*64<<10); grown > limit {
		t.Errorf("the heap has grown by %d bytes, the limit is %d", grown, limit)
	}
	stop(t, b)
	for _, x := range crowd {
		x.close()
	}
	w.close()
	deadline := time.Now().Add(patience)
	for tick := time.NewTicker(5 * time.Millisecond); runtime.NumGoroutine() > goroutines+2; <-tick.C {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), goroutines, buf[:runtime.Stack(buf, true)])
		}
	}
}

// writeAndDelete keeps several writes under way while the topic is deleted. Each is answered.
func writeAndDelete(t testing.TB, c cluster, topic string) error {
	w, other := dial(t, c), dial(t, c)
	defer w.close()
	defer other.close()
	if code := w.createTopic(topic, 2); code != 0 {
		return fmt.Errorf("create %s: error %d", topic, code)
	}
	req := produceRequest(9, "", topic, 0, batch(-1, -1, -1, false, "v"))
	const under = 20
	for i := range 2 * under {
		if err := w.send(w.frame(req)); err != nil {
			return err
		}
		if i == under {
			if code := other.deleteTopic(topic); code != 0 {
				return fmt.Errorf("delete %s: error %d", topic, code)
			}
		}
	}
	for range 2 * under {
		if _, err := w.receive(req); err != nil {
			return fmt.Errorf("%s: an answer is missing: %w", topic, err)
		}
	}
	return nil
}
