package memnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// pair is a connection of a network, from a dialer of a name.
func pair(t testing.TB, n *Network, name string) (client, server net.Conn) {
	t.Helper()
	l, err := n.Listen("b:0")
	if err != nil {
		t.Fatal(err)
	}
	client, err = n.Dialer(name).Dial(context.Background(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	if client.RemoteAddr().String() != server.LocalAddr().String() || client.LocalAddr().String() != server.RemoteAddr().String() {
		t.Fatalf("addresses %v %v %v %v", client.LocalAddr(), client.RemoteAddr(), server.LocalAddr(), server.RemoteAddr())
	}
	return client, server
}

func TestBytesArriveInOrder(t *testing.T) {
	t.Parallel()
	const seed = 7
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	sent := make([]byte, 3<<20)
	for i := range sent {
		sent[i] = byte(rng.Uint32())
	}
	client, server := pair(t, New(), "")
	var done sync.WaitGroup
	done.Go(func() {
		for rest := sent; len(rest) > 0; {
			n := min(1+rng.IntN(100_000), len(rest))
			if m, err := client.Write(rest[:n]); m != n || err != nil {
				t.Errorf("write: %d, %v", m, err)
				return
			}
			rest = rest[n:]
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	var got bytes.Buffer
	buf := make([]byte, 70_000)
	size := rand.New(rand.NewPCG(seed, 1))
	for {
		n, err := server.Read(buf[:1+size.IntN(len(buf))])
		got.Write(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	done.Wait()
	if !bytes.Equal(got.Bytes(), sent) {
		t.Fatal("the bytes differ")
	}
}

func TestCloseIsThatOfTCP(t *testing.T) {
	t.Parallel()
	client, server := pair(t, New(), "")
	write(t, client, "last words")
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("second close: %v", err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("read after close: %v", err)
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Fatalf("write after close: %v", err)
	}
	if b, err := io.ReadAll(server); string(b) != "last words" || err != nil {
		t.Fatalf("the other side read %q, %v", b, err)
	}
	if _, err := server.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Fatalf("write to a closed end: %v", err)
	}
}

func TestHalfClose(t *testing.T) {
	t.Parallel()
	client, server := pair(t, New(), "")
	write(t, client, "question")
	if err := client.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(server); string(b) != "question" || err != nil {
		t.Fatalf("%q, %v", b, err)
	}
	write(t, server, "answer")
	read(t, client, "answer")
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, New(), "")
		for _, c := range []struct {
			name string
			call func() error
		}{
			{"read", func() error {
				client.SetReadDeadline(time.Now().Add(time.Second))
				_, err := client.Read(make([]byte, 1))
				return err
			}},
			{"write", func() error {
				client.SetWriteDeadline(time.Now().Add(time.Second))
				_, err := client.Write(make([]byte, 2*bufferLimit))
				return err
			}},
		} {
			start := time.Now()
			err := c.call()
			var timeout net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("%s: %v", c.name, err)
			}
			if d := time.Since(start); d != time.Second {
				t.Errorf("%s failed after %v", c.name, d)
			}
		}
		if err := client.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		write(t, server, "again")
		read(t, client, "again")
		client.Close()
		server.Close()
	})
}

func TestDial(t *testing.T) {
	t.Parallel()
	n, other := New(), New()
	if _, err := n.Dial(context.Background(), "tcp", "b:1"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("nobody listens: %v", err)
	}
	l, err := n.Listen("b:9092")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Listen("b:9092"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("second listener: %v", err)
	}
	if _, err := other.Dial(context.Background(), "tcp", "b:9092"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("two networks met: %v", err)
	}
	waiting, err := n.Dial(context.Background(), "tcp", "b:9092")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error)
	go func() {
		c, err := l.Accept()
		for err == nil {
			c.Close()
			c, err = l.Accept()
		}
		accepted <- err
	}()
	if _, err := io.ReadAll(waiting); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Fatalf("accept: %v", err)
	}
	if _, err := n.Dial(context.Background(), "tcp", "b:9092"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("after close: %v", err)
	}
	if l, err = n.Listen("b:9092"); err != nil {
		t.Fatal(err)
	}
	left, err := n.Dial(context.Background(), "tcp", "b:9092")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := left.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("a connection nobody accepted: %v", err)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := New()
		client, server := pair(t, n, "a")
		link := n.Link("a", server.LocalAddr().String())

		link.Delay(time.Second)
		start := time.Now()
		write(t, client, "slow ")
		link.Delay(0)
		write(t, client, "second")
		read(t, server, "slow second")
		if d := time.Since(start); d != time.Second {
			t.Fatalf("arrived after %v", d)
		}

		link.Drop()
		write(t, client, "lost?")
		server.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := server.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a dropped packet arrived: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Dialer("a").Dial(ctx, "tcp", server.LocalAddr().String()); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("dial through a stalled link: %v", err)
		}
		link.Heal()
		server.SetReadDeadline(time.Time{})
		read(t, server, "lost?")

		link.Cut()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("read on a cut link: %v", err)
		}
		if _, err := server.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("write on a cut link: %v", err)
		}
		if _, err := n.Dialer("a").Dial(t.Context(), "tcp", server.LocalAddr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial on a cut link: %v", err)
		}
		if _, err := n.Dialer("b").Dial(t.Context(), "tcp", server.LocalAddr().String()); err != nil {
			t.Fatalf("another link: %v", err)
		}
		link.Heal()
		if _, err := n.Dialer("a").Dial(t.Context(), "tcp", server.LocalAddr().String()); err != nil {
			t.Fatalf("dial after healing: %v", err)
		}
	})
}

func TestDelayedBulkLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := New()
		client, server := pair(t, n, "")
		n.Link("", server.LocalAddr().String()).Delay(20 * time.Millisecond)
		sent := bytes.Repeat([]byte("0123456789"), 200_000)
		go func() {
			client.Write(sent)
			client.Close()
		}()
		got, err := io.ReadAll(server)
		if err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("%d bytes of %d, %v", len(got), len(sent), err)
		}
	})
}

func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
		t.Fatalf("write: %d, %v", n, err)
	}
}

func read(t *testing.T, c net.Conn, want string) {
	t.Helper()
	buf := make([]byte, len(want))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != want {
		t.Fatalf("read %q, %v, want %q", buf, err, want)
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	client, server := pair(b, New(), "")
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			server.Write(buf[:n])
		}
	}()
	msg := make([]byte, 200)
	b.ReportAllocs()
	for b.Loop() {
		client.Write(msg)
		if _, err := io.ReadFull(client, msg); err != nil {
			b.Fatal(err)
		}
	}
	client.Close()
}

func BenchmarkBulk(b *testing.B) {
	client, server := pair(b, New(), "")
	go io.Copy(io.Discard, server)
	buf := make([]byte, 64<<10)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		client.Write(buf)
	}
	client.Close()
}
