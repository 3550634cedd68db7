package workload_test

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/txn/history"
	"github.com/millrace/millrace/txn/history/workload"
)

// seed is fresh, or MILLRACE_SEED.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := uint64(time.Now().UnixNano())
	if s := os.Getenv("MILLRACE_SEED"); s != "" {
		var err error
		if n, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("MILLRACE_SEED: %v", err)
		}
	}
	t.Logf("seed %d (MILLRACE_SEED repeats the choices)", n)
	return n
}

// verdict checks a history, prints the report, and keeps a history that has an anomaly.
func verdict(t *testing.T, events []history.Event) *history.Report {
	t.Helper()
	r, err := history.Check(events)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
	return r
}

func TestHealthy(t *testing.T) {
	b := brokertest.Start(t)
	events, err := workload.Run(t.Context(), workload.Options{Seeds: b.Seeds(), Dial: b.Dial, Duration: 3 * time.Second, Seed: seed(t)})
	if err != nil {
		t.Fatal(err)
	}
	if r := verdict(t, events); !r.Valid() {
		t.Error("anomalies in a healthy broker")
	}
}
