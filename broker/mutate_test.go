package broker_test

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

// TestDamagedRequests flips, drops and repeats bytes in what real clients send.
// Whatever comes of it, the broker answers or closes that connection, and goes on.
func TestDamagedRequests(t *testing.T) {
	const seed, rounds = 20261129, 8
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	b := brokertest.Start(t, brokertest.OnTCP(), brokertest.Configure(func(c *broker.Config) { c.NoAutoCreate = true }))
	createTopic(t, b, "t", 2)
	var frames [][]byte
	eachLine(t, "testdata/captures.jsonl.gz", func(line []byte) {
		var c capture
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		raw, err := hex.DecodeString(c.Request)
		if err != nil {
			t.Fatal(err)
		}
		if c.API != "CreateTopics" { // a damaged count may ask for thousands of partitions
			frames = append(frames, raw[4:])
		}
	})
	before := servedVersions(t, b)
	for range rounds {
		for _, f := range frames {
			sendDamaged(t, b, damage(rng, f))
		}
	}
	if after := servedVersions(t, b); len(after) != len(before) {
		t.Errorf("%d APIs are served after the damaged requests, %d before", len(after), len(before))
	}
	if base := produce(t, b, "t", 1, batchOf("v")); base < 0 {
		t.Errorf("base offset %d", base)
	}
}

// damage changes a few bytes behind the API key, and sometimes the length.
func damage(rng *rand.Rand, frame []byte) []byte {
	f := append([]byte(nil), frame...)
	for range 1 + rng.IntN(3) {
		if len(f) < 12 {
			break
		}
		at := 4 + rng.IntN(len(f)-4)
		switch rng.IntN(4) {
		case 0:
			f[at] = byte(rng.Uint32())
		case 1:
			f[at] ^= 1 << rng.IntN(8)
		case 2:
			f = append(f[:at], f[min(at+1+rng.IntN(4), len(f)):]...)
		default:
			f = append(f[:at:at], append([]byte{0xff, 0xff, 0xff, 0x7f}[:1+rng.IntN(4)], f[at:]...)...)
		}
	}
	return f
}

// sendDamaged sends one frame through Dial and waits until the broker is done with
// the connection.
func sendDamaged(t *testing.T, b *broker.Broker, frame []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := b.Dial(ctx, "", b.Seeds()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	raw := append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
	if _, err := c.Write(raw); err != nil && !strings.Contains(err.Error(), "closed") {
		t.Fatal(err)
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		// The broker may have closed already.
		_ = half.CloseWrite()
	}
	if _, err := io.ReadAll(c); err != nil && !strings.Contains(err.Error(), "closed") && !strings.Contains(err.Error(), "reset") {
		t.Fatalf("frame %x: %v", frame, err)
	}
}
