package broker_test

import (
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
)

// A frame whose array claims as many elements as could just fit is refused at a
// bounded price, from many connections at once too.
func TestHostileClaimsTakeBoundedMemory(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP())
	hostile := func(req kmsg.Request, version int16, size, element int, prefix ...byte) []byte {
		req.SetVersion(version)
		head := kmsg.NewRequestFormatter(kmsg.FormatterClientID("x")).AppendRequest(nil, req, 1)
		// The header ends where the body begins: behind the client id and the empty tags.
		frame := append(make([]byte, 0, size), head[:4+8+2+1+1]...)
		frame = append(frame, prefix...)
		frame = binary.AppendUvarint(frame, uint64((size-len(frame)-8)/element)) // elements claimed
		for len(frame) < size {
			frame = append(frame, 0xff) // each a length that is none
		}
		binary.BigEndian.PutUint32(frame, uint32(size-4))
		return frame
	}
	frames := [][]byte{
		hostile(kmsg.NewPtrCreateTopicsRequest(), 7, 1<<20, 10),
		hostile(kmsg.NewPtrMetadataRequest(), 9, 1<<20, 2),
		hostile(kmsg.NewPtrOffsetFetchRequest(), 7, 1<<20, 3, 1),
		hostile(kmsg.NewPtrOffsetCommitRequest(), 8, 4<<20, 2, 1, 0, 0, 0, 0, 1, 0),
	}
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	stop, stopped := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		for {
			select {
			case <-stop:
				stopped <- peak
				return
			case <-time.After(20 * time.Millisecond):
				runtime.GC() // what is alive counts; how far the collector is behind depends on the machine's load
				runtime.ReadMemStats(&now)
				peak = max(peak, now.HeapAlloc)
			}
		}
	}()
	var wg sync.WaitGroup
	for range 4 {
		for _, frame := range frames {
			wg.Go(func() {
				c, err := net.Dial("tcp", b.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
					t.Error(err)
				}
				// The broker may close before it has taken everything.
				_, _ = c.Write(frame)
				if n, err := io.Copy(io.Discard, c); n != 0 {
					t.Errorf("answered with %d bytes (%v), want the end of the connection", n, err)
				}
			})
		}
	}
	wg.Wait()
	close(stop)
	peak := <-stopped
	runtime.ReadMemStats(&now)
	t.Logf("16 hostile frames: peak of the heap %d MiB, before %d MiB, %d MiB allocated in all",
		peak>>20, before.HeapAlloc>>20, (now.TotalAlloc-before.TotalAlloc)>>20)
	if peak > before.HeapAlloc+600<<20 {
		t.Errorf("the heap grew from %d to %d MiB", before.HeapAlloc>>20, peak>>20)
	}
	servedVersions(t, b)
}
