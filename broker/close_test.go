package broker_test

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker"
)

// ourGoroutines lists the stacks of goroutines that run code of this module's
// broker, other than the caller.
func ourGoroutines() []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var out []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "millrace/broker/internal") || strings.Contains(g, "millrace/core") {
			out = append(out, g)
		}
	}
	return out
}

// Close answers or ends whatever is parked, closes the connections and leaves no
// goroutine. This test must not run beside others: it looks at all goroutines.
func TestCloseLeavesNothing(t *testing.T) {
	if left := ourGoroutines(); len(left) > 0 {
		t.Fatalf("goroutines of earlier tests:\n%s", strings.Join(left, "\n\n"))
	}
	b, err := broker.Start(context.Background(), broker.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", GroupInitialRebalanceDelay: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.AllowAutoTopicCreation(), kgo.TransactionalID("x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}

	fetch := fetchRequest("t", 0, 2, 1000)
	fetch.MaxWaitMillis, fetch.MinBytes = 3_600_000, 1<<30
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.ProtocolType = 3, "g", "consumer"
	join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = 30_000, 3_600_000
	join.Protocols = append(join.Protocols, kmsg.JoinGroupRequestProtocol{Name: "range"})
	var conns []net.Conn
	for _, req := range []kmsg.Request{fetch, join} {
		c := dialTCP(t, b)
		defer c.Close()
		if _, err := c.Write(format(req)); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	// Both requests are parked when a later one of the same connection was read:
	// nothing tells so from outside, so give the broker a moment of its own work.
	servedVersions(t, b)

	began := time.Now()
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("Close took %v", took)
	}
	for i, c := range conns {
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); os.IsTimeout(err) {
			t.Errorf("connection %d is open after Close", i)
		}
	}
	cl.Close()
	deadline := time.Now().Add(patience)
	left := ourGoroutines()
	for len(left) > 0 && time.Now().Before(deadline) {
		runtime.Gosched()
		left = ourGoroutines()
	}
	if len(left) > 0 {
		t.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
	}
}
