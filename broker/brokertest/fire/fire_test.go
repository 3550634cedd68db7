package fire

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/core/seedtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(copyTopic())
	}
	dir, err := os.MkdirTemp("", "millrace-fire-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buildDir = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// TestCopyUnderFire is the copy with the program on txn/session.
func TestCopyUnderFire(t *testing.T) { rounds(t, ours(t, false)) }

// TestSaramasCopyUnderFire is the copy with the same program on txn/session/onsarama, as a group.
func TestSaramasCopyUnderFire(t *testing.T) { rounds(t, ours(t, true)) }

// TestKafkasCopyUnderFire is the copy with Apache Kafka's program.
func TestKafkasCopyUnderFire(t *testing.T) { rounds(t, kafkas(t)) }

// rounds runs the combinations of what is ended, how, and how the copiers share the work, one after the other.
func rounds(t *testing.T, p program) {
	size := scale{rounds: 2, records: 1200, partitions: 2, bounces: 3, perTxn: 20}
	if p.groupOnly {
		size.bounces = 1 // a member that is killed is missed for its session timeout
	}
	if n := os.Getenv("MILLRACE_FIRE"); n != "" {
		size = scale{records: 12_000, partitions: 3, bounces: 8, perTxn: 25}
		var err error
		if size.rounds, err = strconv.Atoi(n); err != nil {
			t.Fatalf("MILLRACE_FIRE: %v", err)
		}
	}
	seed := seedtest.New(t)
	t.Log(p.name)
	s := startServer(t)
	defer func() { s.t = t }() // of a round until then
	for i := range size.rounds {
		r := round{scale: size, number: i, rng: rand.New(rand.NewPCG(seed, uint64(i))), program: p, server: s}
		// In the order that the first two rounds end broker and copiers, in order and hard, in both forms.
		r.groupMode = i%2 == 1 || p.groupOnly
		r.hard = i/2%2 == i%2
		r.what = []target{copiers, broker, everything}[i%3]
		if !t.Run(r.String(), r.run) {
			return
		}
	}
}

// scale is how large the rounds are.
type scale struct {
	rounds, records, partitions int
	bounces                     int // while the copy runs
	perTxn                      int
}

type target string

const (
	broker     target = "broker"
	copiers    target = "copiers"
	everything target = "broker and copiers"
)

// round is one copy of a topic.
type round struct {
	scale
	number    int
	rng       *rand.Rand
	program   program
	server    *server
	groupMode bool
	hard      bool
	what      target
}

func (r *round) String() string {
	form, how := "per partition", "clean"
	if r.groupMode {
		form = "group"
	}
	if r.hard {
		how = "hard"
	}
	return fmt.Sprintf("%d %s, %s ends of %s", r.number, form, how, r.what)
}

func (r *round) run(t *testing.T) {
	r.server.t = t
	name := fmt.Sprintf("round-%d", r.number)
	input, output := name+"-in", name+"-out"
	r.seed(t, input, output)
	w := watch(t, r.server.addr, output)
	var crew []*copier
	for i := range max(r.partitions, 2) {
		crew = append(crew, startCopier(t, r.program, job{
			brokers: r.server.addr, input: input, output: output, partition: i, group: name, id: fmt.Sprintf("%s-copier-%d", name, i),
			size: r.perTxn, timeout: 10 * time.Second, groupMode: r.groupMode,
		}))
	}
	began := time.Now()
	for i := range r.bounces {
		// Progress, not time, says when: a slow machine gets as many bounces in the midst of the work as a fast one.
		if err := w.await((i + 1) * r.records / (r.bounces + 2)); err != nil {
			t.Fatal(err)
		}
		r.bounce(crew)
	}
	r.finish(t, crew, w)
	starts, broke := 0, 0
	for _, c := range crew {
		s, b, _ := c.tally()
		starts, broke = starts+s, broke+b
	}
	t.Logf("%d records in %v; copiers started %d times, %d of them ended by themselves", r.records, time.Since(began).Round(time.Millisecond), starts, broke)
	for p, at := range offsets(t, r.server.addr, name, input) {
		if want := (r.records - int(p) + r.partitions - 1) / r.partitions; at != int64(want) {
			t.Errorf("the group has committed offset %d of partition %d, want %d", at, p, want)
		}
	}
}

// bounce ends what this round is about, and brings it back.
func (r *round) bounce(crew []*copier) {
	signal := syscall.SIGTERM
	if r.hard {
		signal = syscall.SIGKILL
	}
	if r.what != broker {
		crew[r.rng.IntN(len(crew))].bounce(signal)
	}
	if r.what != copiers {
		r.server.bounce(signal)
	}
}

// finish waits until the copiers are done, and compares.
func (r *round) finish(t *testing.T, crew []*copier, w *watcher) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for _, c := range crew {
		select {
		case <-c.done:
		case <-limit.C:
			t.Fatalf("copier %s is not done after %v; %d of %d records were seen\n%s", c.job.id, patience, w.count(), r.records, c.stderr)
		}
		if _, _, err := c.tally(); err != nil {
			t.Fatalf("copier %s: %v", c.job.id, err)
		}
	}
	if err := w.await(r.records); err != nil {
		t.Error(err)
	}
	w.close()
	check(t, "the reader that watched", w.seen, r.records, r.partitions)
	after := watch(t, r.server.addr, crew[0].job.output)
	if err := after.await(r.records); err != nil {
		t.Error(err)
	}
	after.close()
	check(t, "the output", after.seen, r.records, r.partitions)
}

// seed makes both topics and writes 0, 1, 2, … to the input, to its partitions in turn.
func (r *round) seed(t *testing.T, input, output string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.server.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(input))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := kadm.NewClient(cl).CreateTopics(ctx, int32(r.partitions), 1, nil, input, output); err != nil {
		t.Fatal(err)
	}
	var records []*kgo.Record
	for n := range r.records {
		records = append(records, &kgo.Record{Partition: int32(n % r.partitions), Value: strconv.AppendInt(nil, int64(n), 10)})
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
