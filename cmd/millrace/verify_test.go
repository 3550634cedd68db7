package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/core/seedtest"
	"github.com/millrace/millrace/txn/history"
	"github.com/millrace/millrace/txn/history/historytest"
)

// disturb kills the server, or stops it for a moment, at random times until over is
// closed. The server runs in the end.
func disturb(t *testing.T, s *process, dir string, rng *rand.Rand, over <-chan error) (kills, pauses int, err error) {
	t.Helper()
	for {
		select {
		case err := <-over:
			return kills, pauses, err
		case <-time.After(time.Duration(200+rng.IntN(1200)) * time.Millisecond):
		}
		if rng.IntN(4) == 0 {
			pauses++
			strike(t, s, syscall.SIGSTOP)
			<-time.After(time.Duration(100+rng.IntN(1000)) * time.Millisecond)
			strike(t, s, syscall.SIGCONT)
			continue
		}
		kills++
		strike(t, s, syscall.SIGKILL)
		if err := s.cmd.Wait(); err == nil {
			t.Fatalf("the server ended before the kill:\n%s", s.log.String())
		}
		if log := s.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "DATA RACE") {
			t.Fatalf("the server's log:\n%s", log)
		}
		s = serverAt(t, dir, s.addr)
	}
}

func strike(t *testing.T, s *process, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("%v: %v\n%s", sig, err, s.log.String())
	}
}

// TestVerify: millrace verify finds nothing in a server that is killed and stopped
// under it, on a good network with clients of both versions and on a bad one, keeps
// the history, and finds what is wrong with it once it is spoilt. With MILLRACE_SOAK=1
// it takes five minutes.
func TestVerify(t *testing.T) {
	for name, network := range map[string][]string{
		"good network": nil,
		"bad network":  {"--only-v2", "--cut", "150", "--delay", "100", "--late", "20"},
	} {
		t.Run(name, func(t *testing.T) { verifyUnderFire(t, network) })
	}
}

func verifyUnderFire(t *testing.T, network []string) {
	t.Parallel()
	seconds := 8
	if os.Getenv("MILLRACE_SOAK") != "" {
		seconds = 300
	}
	seed := seedtest.New(t)
	dir, name := t.TempDir(), filepath.Join(t.TempDir(), "history.txt")
	s := server(t, dir)
	cmd := exec.Command(binary, append([]string{"verify", "--brokers", s.addr, "--seconds", strconv.Itoa(seconds), "--seed", strconv.FormatUint(seed, 10),
		"--history", name, "--patience", "2m", "--output", "json"}, network...)...)
	var out, errout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	kills, pauses, err := disturb(t, s, dir, rand.New(rand.NewPCG(seed, 1)), over)
	if err != nil {
		text := execute(t, "", "verify", "--check", name)
		t.Fatalf("%v after %d kills\n%s%s\n%s", err, kills, out.String(), errout.String(), text.out)
	}
	var v verdict
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	t.Logf("%d kills, %d pauses: %s", kills, pauses, out.String())
	if !v.Valid || v.Seed != seed || v.Transactions < 10 || kills < 2 {
		t.Errorf("after %d kills: %+v", kills, v)
	}
	checkSpoilt(t, name, seed)
}

// checkSpoilt judges a kept history again, as it is and with a record taken out.
func checkSpoilt(t *testing.T, name string, seed uint64) {
	t.Helper()
	if out := ok(t, "", "verify", "--check", name); !strings.HasPrefix(out, "Seed "+strconv.FormatUint(seed, 10)+".\nNo anomaly in ") {
		t.Errorf("check: %s", out)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	events, err := history.Parse(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	tamper := historytest.Tamperings()[0]
	if !tamper.Apply(rand.New(rand.NewPCG(seed, 2)), events) {
		t.Fatalf("%s: no occasion", tamper.Name)
	}
	var b []byte
	for i := range events {
		b = append(events[i].AppendText(b), '\n')
	}
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	o := execute(t, "", "verify", "--check", name)
	found := false
	for _, c := range tamper.Shows {
		found = found || strings.Contains(o.out, string(c))
	}
	if o.code != 1 || !found || !strings.HasPrefix(o.errout, "millrace: anomalies found") {
		t.Errorf("%s: exit code %d\n%s%s", tamper.Name, o.code, o.out, o.errout)
	}
}

func TestVerifyRounds(t *testing.T) {
	t.Parallel()
	s := server(t, t.TempDir())
	name := filepath.Join(t.TempDir(), "history.txt")
	out := ok(t, "", "verify", "--brokers", s.addr, "--seconds", "2", "--round", "1", "--seed", "7", "--history", name)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "round 1 of 2, seed 7: no anomaly, ") || !strings.HasPrefix(lines[1], "round 2 of 2, seed 8: ") ||
		!strings.HasPrefix(lines[2], "No anomaly in 2 rounds, ") {
		t.Errorf("%s", out)
	}
	if again := ok(t, "", "verify", "--check", name); again != out {
		t.Errorf("judged again:\n%swant\n%s", again, out)
	}
	if topics := ok(t, "", "topic", "list", "--brokers", s.addr); topics != "" {
		t.Errorf("topics are left: %s", topics)
	}
}

func TestVerifyCompanions(t *testing.T) {
	t.Parallel()
	s := server(t, t.TempDir())
	for _, w := range []string{"bank", "copy", "counter", "order", "unique"} {
		out := ok(t, "", "verify", "--brokers", s.addr, "--workload", w, "--seconds", "1", "--seed", "7")
		if !strings.HasPrefix(out, "Seed 7.\n"+w+": ") || !strings.HasSuffix(out, "\nNothing is wrong.\n") {
			t.Errorf("%s: %s", w, out)
		}
		var r companionResult
		if err := json.Unmarshal([]byte(ok(t, "", "verify", "-b", s.addr, "--workload", w, "--seconds", "1", "-o", "json")), &r); err != nil || !r.Valid || r.Workload != w || r.Seed == 0 {
			t.Errorf("%s: %+v, %v", w, r, err)
		}
	}
}

func TestVerifyErrors(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "history.txt")
	if err := os.WriteFile(name, []byte("p0 ok drain\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"--seconds is 0", 2, []string{"--seconds", "0"}},
		{"Options.Clients is 1001", 2, []string{"--clients", "1001"}},
		{`--workload is "fun"`, 2, []string{"--workload", "fun"}},
		{"keeps none", 2, []string{"--workload", "bank", "--history", name}},
		{"verify needs no arguments", 2, []string{"now"}},
		{"no such file", 1, []string{"--check", name + "x"}},
		{"line 2", 1, []string{"--check", name}},
		{"127.0.0.1:1", 1, []string{"--brokers", "127.0.0.1:1", "--timeout", "500ms"}},
	} {
		if o := execute(t, "", append([]string{"verify"}, c.args...)...); o.code != c.code || !strings.Contains(o.errout, c.want) {
			t.Errorf("verify %v: exit code %d, %q; want %d, %q", c.args, o.code, o.errout, c.code, c.want)
		}
	}
}
