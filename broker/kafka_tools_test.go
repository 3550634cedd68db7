package broker_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker/brokertest"
)

// kafkaTool runs a class of Apache Kafka's tools, from the folder of jars that MILLRACE_KAFKA_LIB names (make bench-peers fetches
// them).
func kafkaTool(t *testing.T, class string, args ...string) string {
	t.Helper()
	lib := os.Getenv("MILLRACE_KAFKA_LIB")
	if lib == "" {
		t.Skip("MILLRACE_KAFKA_LIB names no folder with the jars of Apache Kafka 4.4")
	}
	cmd := exec.CommandContext(t.Context(), "java", append([]string{"-XX:TieredStopAtLevel=1", "-cp", filepath.Join(lib, "*"), class}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}

var (
	// complaint is what DumpLogSegments says of a file that it does not like.
	complaint = regexp.MustCompile(`(?i)error|exception|invalid|corrupt|not found|isvalid: false|out of order|log timestamp:|is followed by`)
	// needless are complaints that it has about Kafka's own files too: it compares the first record of a segment with -1, looks for gaps
	// where compaction has left some, and finds no record in a batch that was emptied.
	needless = regexp.MustCompile(`^\s*-1 is followed by|log timestamp: -1$|log4j|errorCode`)
)

// TestKafkaReadsOurFiles: Kafka's DumpLogSegments reads every file of a folder with everything in it (rolled segments, each codec,
// LogAppendTime, committed and aborted transactions, a compacted log, both coordinators and the metadata) without a complaint.
func TestKafkaReadsOurFiles(t *testing.T) {
	kafkaTool(t, "org.apache.kafka.tools.DumpLogSegments", "--help")
	dir := t.TempDir()
	b := brokertest.Start(t, brokertest.InFolder(dir), brokertest.CleanEvery(20*time.Millisecond))
	ctx := background(t)
	adm := admin(t, b)
	topic := func(name string, config ...string) {
		c := map[string]*string{}
		for i := 0; i < len(config); i += 2 {
			c[config[i]] = &config[i+1]
		}
		if _, err := adm.CreateTopic(ctx, 1, 1, c, name); err != nil {
			t.Fatal(err)
		}
	}
	topic("rolled", "internal.segment.bytes", "3000", "index.interval.bytes", "100")
	topic("stamped", "message.timestamp.type", "LogAppendTime", "compression.type", "zstd")
	topic("compacted", "cleanup.policy", "compact", "internal.segment.bytes", "2000", "min.cleanable.dirty.ratio", "0.01")
	topic("txn", "internal.segment.bytes", "3000")
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.ProducerBatchCompression(codec))
		for i := range 30 {
			for _, name := range []string{"rolled", "stamped", "compacted"} {
				r := &kgo.Record{Topic: name, Key: fmt.Append(nil, i%7), Value: []byte(strings.Repeat("v", 5*i))}
				if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	cl := newClient(t, kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial), kgo.TransactionalID("x"))
	for i := range 20 {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "txn", Value: make([]byte, 200)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := cl.EndTransaction(ctx, kgo.TransactionEndTry(i%3 > 0)); err != nil {
			t.Fatal(err)
		}
	}
	o := kadm.Offsets{}
	o.AddOffset("rolled", 0, 7, -1)
	if err := adm.CommitAllOffsets(ctx, "g", o); err != nil {
		t.Fatal(err)
	}
	mustAlterByAdmin(t, adm, "rolled")
	for b.Cleaning().Compactions == 0 {
		time.Sleep(5 * time.Millisecond) // asks again; the test's own time bounds it
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	kinds := map[string][]string{"": nil, "metadata": {"--cluster-metadata-decoder"}, "offsets": {"--offsets-decoder"}, "txn": {"--transaction-log-decoder"}}
	files := map[string][]string{}
	for _, suffix := range []string{".log", ".index", ".timeindex", ".txnindex", ".snapshot"} {
		found, err := filepath.Glob(filepath.Join(dir, "*", "*"+suffix))
		if err != nil || len(found) == 0 {
			t.Fatalf("%d files of %s, %v", len(found), suffix, err)
		}
		for _, path := range found {
			kind := ""
			switch folder := filepath.Base(filepath.Dir(path)); {
			case suffix != ".log":
			case strings.HasPrefix(folder, "__cluster"):
				kind = "metadata"
			case strings.HasPrefix(folder, "__consumer"):
				kind = "offsets"
			case strings.HasPrefix(folder, "__transaction"):
				kind = "txn"
			}
			files[kind] = append(files[kind], path)
		}
	}
	for kind, paths := range files {
		args := append([]string{"--files", strings.Join(paths, ","), "--deep-iteration", "--verify-index-only"}, kinds[kind]...)
		if kind != "" {
			args = append([]string{"--files", strings.Join(paths, ",")}, kinds[kind]...)
		}
		out := kafkaTool(t, "org.apache.kafka.tools.DumpLogSegments", args...)
		gaps := false // in what is listed now they are no fault
		for line := range strings.Lines(out) {
			if path, ok := strings.CutPrefix(line, "Non-consecutive offsets in "); ok {
				gaps = strings.Contains(path, "compacted-0")
			}
			line = strings.TrimSpace(line)
			if complaint.MatchString(line) && !needless.MatchString(line) && !(gaps && strings.Contains(line, "is followed by")) {
				t.Errorf("%s: %s", kind, line)
			}
		}
		if n := strings.Count(out, "Dumping "); n != len(paths) {
			t.Errorf("%s: %d files of %d were dumped:\n%s", kind, n, len(paths), out)
		}
	}
}

func mustAlterByAdmin(t *testing.T, adm *kadm.Client, topic string) {
	t.Helper()
	day := "86400000"
	r, err := adm.AlterTopicConfigs(background(t), []kadm.AlterConfig{{Name: "retention.ms", Value: &day}}, topic)
	if err != nil || r[0].Err != nil {
		t.Fatal(err, r)
	}
}

// TestKafkaConfigTool: Kafka's own tool changes and shows settings of topics and brokers.
func TestKafkaConfigTool(t *testing.T) {
	b := brokertest.Start(t, brokertest.OnTCP())
	createTopic(t, b, "t", 1)
	for _, step := range []struct{ args, want string }{
		{"--alter --entity-type topics --entity-name t --add-config millrace.durability=os,retention.ms=77777,cleanup.policy=[compact,delete]", "Completed updating config for topic t."},
		{"--describe --entity-type topics --entity-name t", "cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}"},
		{"--alter --entity-type topics --entity-name t --delete-config cleanup.policy", "Completed updating config for topic t."},
		{"--alter --entity-type topics --entity-name t --add-config retention.ms=soon", "InvalidConfigurationException: Invalid value soon for configuration retention.ms: Not a number of type LONG"},
		{"--alter --entity-type topics --entity-name none --add-config retention.ms=1", "UnknownTopicOrPartitionException: The topic 'none' does not exist."},
		{"--alter --entity-type brokers --entity-default --add-config log.retention.ms=5000", "Completed updating default config for brokers in the cluster."},
		{"--alter --entity-type brokers --entity-name 1 --add-config millrace.durability=interval", "Completed updating config for broker 1."},
		{"--describe --entity-type brokers --entity-default", "log.retention.ms=5000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=5000}"},
		{"--describe --entity-type brokers --entity-name 1", "millrace.durability=interval sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:millrace.durability=interval, DEFAULT_CONFIG:millrace.durability=fsync}"},
		{"--alter --entity-type brokers --entity-name 1 --add-config log.dirs=/x", "InvalidRequestException: Cannot update these configs dynamically: [log.dirs]"},
	} {
		out := kafkaTool(t, "org.apache.kafka.tools.ConfigCommand", append([]string{"--bootstrap-server", b.Addr().String()}, strings.Fields(step.args)...)...)
		if !strings.Contains(out, step.want) {
			t.Errorf("%s\nsays\n%s\nwant\n%s", step.args, out, step.want)
		}
	}
}
