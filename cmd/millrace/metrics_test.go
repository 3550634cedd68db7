package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// page gets a page of the monitoring address.
func (p *process) page(t *testing.T, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + p.metrics + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", path, resp.Status, err)
	}
	return string(body)
}

// TestMetrics: what clients do shows, and so does a partition that is damaged, while the broker goes on.
func TestMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serverAt(t, dir, "127.0.0.1:0", "--metrics", "127.0.0.1:0")
	ok(t, "one\ntwo\n", "produce", "--brokers", s.addr, "orders")
	ok(t, "three\n", "produce", "--brokers", s.addr, "others")
	page := s.page(t, "/metrics")
	for _, want := range []string{
		`millrace_log_end_offset_total{topic="orders"} 2`, `millrace_log_unacknowledged_records{topic="orders"} 0`,
		`millrace_coordinators_up 1`, `millrace_transactions_ongoing 0`, `go_goroutines`, `process_resident_memory_bytes`,
	} {
		if !strings.Contains(page, "\n"+want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	if strings.Contains(page, `millrace_requests_total{api="Produce"} 0`) || strings.Contains(page, "millrace_partition_offline{") {
		t.Errorf("in a healthy broker that took records:\n%s", page)
	}
	s.stop(t, syscall.SIGTERM)
	log := filepath.Join(dir, "orders-0", "00000000000000000000.log")
	if err := errors.Join(os.Remove(log), os.Mkdir(log, 0o755)); err != nil {
		t.Fatal(err)
	}
	s = serverAt(t, dir, "127.0.0.1:0", "--metrics", "127.0.0.1:0")
	for path, want := range map[string]string{"/metrics": `millrace_partition_offline{partition="orders-0"`, "/healthz": `"orders-0":`} {
		if page := s.page(t, path); !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	if got := ok(t, "", "consume", "--brokers", s.addr, "others", "--from-beginning", "--max-messages", "1"); got != "three\n" {
		t.Errorf("of the other topic: %q", got)
	}
}

func TestMetricsAddressInUse(t *testing.T) {
	t.Parallel()
	s := serverAt(t, t.TempDir(), "127.0.0.1:0", "--metrics", "127.0.0.1:0")
	o := execute(t, "", "server", "--listen", "127.0.0.1:0", "--metrics", s.metrics)
	if o.code != 1 || !strings.Contains(o.errout, s.metrics) {
		t.Errorf("exit code %d, %q", o.code, o.errout)
	}
}
