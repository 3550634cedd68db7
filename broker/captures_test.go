package broker_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/broker/brokertest"
)

// capture is a request that a client sent to Apache Kafka 4.4.0 through a
// recording proxy. Clients: Java 4.4.0, and franz-go as itself and held to Kafka
// versions from 0.11 on.
type capture struct {
	Key     int16  `json:"api_key"`
	API     string `json:"api"`
	Version int16  `json:"api_version"`
	Client  string `json:"client"`
	Request string `json:"request_hex"`
	// Response is empty for a Produce with acks=0.
	Response string `json:"response_hex"`
}

// TestRecordedRequestsAreAnswered replays what real clients send. The state is not
// that of the recording, so errors are fine; but every request must be answered,
// in the encoding of its version, with nothing left over.
func TestRecordedRequestsAreAnswered(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP())
	served := servedVersions(t, b)
	versions := map[string]bool{}
	eachLine(t, "testdata/captures.jsonl.gz", func(line []byte) {
		var c capture
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if _, ok := served[c.Key]; !ok || c.Response == "" {
			return
		}
		if err := replay(t, b.Addr(), c); err != nil {
			t.Errorf("%s version %d of %s: %v", c.API, c.Version, c.Client, err)
		}
		versions[fmt.Sprintf("%s %d", c.API, c.Version)] = true
	})
	if len(versions) < 80 {
		t.Errorf("only %d pairs of API and version were replayed", len(versions))
	}
	t.Logf("%d pairs of API and version", len(versions))
}

func replay(t *testing.T, addr net.Addr, c capture) error {
	raw, err := hex.DecodeString(c.Request)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Write(raw); err != nil {
		return err
	}
	body, err := readAnswer(nc)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("no answer")
	}
	if err != nil {
		return fmt.Errorf("the connection was closed: %w", err)
	}
	if got, want := binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(raw[8:]); got != want {
		return fmt.Errorf("correlation id %d, want %d", got, want)
	}
	resp := kmsg.ResponseForKey(c.Key)
	resp.SetVersion(c.Version)
	if err := decodeAnswer(resp, body); err != nil {
		return err
	}
	head := 4
	if resp.IsFlexible() && c.Key != 18 {
		head++
	}
	if again := resp.AppendTo(nil); string(again) != string(body[head:]) {
		return fmt.Errorf("the answer has %d bytes, its decoding encodes to %d", len(body)-head, len(again))
	}
	return nil
}
