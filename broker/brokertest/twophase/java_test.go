package twophase

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/txn/twophase"
)

// TestJava: a program with the Java client 4.4.0 prepares, ends, and comes back to decide; the log has lost its power in
// between. It needs a JDK and the jars of kafka-clients 4.4.0 with what they depend on, in the folder MILLRACE_KAFKA_JARS:
// make test-java.
func TestJava(t *testing.T) {
	jars := os.Getenv("MILLRACE_KAFKA_JARS")
	if jars == "" {
		t.Skip("MILLRACE_KAFKA_JARS is not set, see make test-java")
	}
	if found, err := filepath.Glob(filepath.Join(jars, "kafka-clients-4.4.*.jar")); err != nil || len(found) == 0 {
		t.Fatalf("no kafka-clients 4.4 in %s", jars)
	}
	javac, err := exec.LookPath("javac")
	if err != nil {
		t.Skip("SKIPPED, no JDK:", err)
	}
	classes := t.TempDir()
	if out, err := exec.Command(javac, "-cp", filepath.Join(jars, "*"), "-d", classes, "testdata/TwoPhase.java").CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	n := brokertest.StartNode(t, brokertest.OnTCP(), brokertest.Configure(func(c *broker.Config) { c.TransactionTwoPhaseCommit = true }))
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("java", append([]string{"-cp", classes + string(os.PathListSeparator) + filepath.Join(jars, "*"), "TwoPhase", n.Broker().Addr().String()}, args...)...)
		var errout strings.Builder
		cmd.Stderr = &errout
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v\n%s%s", args, err, out, errout.String())
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return lines[len(lines)-1]
	}
	for _, decision := range []string{"commit", "abort"} {
		t.Run(decision, func(t *testing.T) {
			topic := "java-" + decision
			client := func(opts ...kgo.Opt) *kgo.Client {
				cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(n.Seeds()...), kgo.Dialer(n.Dial))...)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(cl.Close)
				return cl
			}
			if _, err := kadm.NewClient(client()).CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
				t.Fatal(err)
			}
			said, ok := strings.CutPrefix(run(topic, topic, "begin"), "PREPARED ")
			state, err := twophase.ParsePreparedState(said)
			if !ok || err != nil || !state.Any() {
				t.Fatalf("begin said %q: %v", said, err)
			}
			n.Crash(t, 1)
			if got := run(topic, topic, decision, state.String()); got != "DONE" {
				t.Fatalf("%s said %q", decision, got)
			}
			want := []string{"java 0", "java 1", "java 2", "java next"}
			if decision == "abort" {
				want = want[3:]
			}
			var got []string
			reader := client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
			for len(got) < len(want) {
				fetches := reader.PollFetches(t.Context())
				if err := fetches.Err(); err != nil {
					t.Fatal(err)
				}
				fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
			}
			if !slices.Equal(got, want) {
				t.Errorf("read %q, want %q", got, want)
			}
		})
	}
}
