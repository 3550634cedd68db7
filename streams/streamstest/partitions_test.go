package streamstest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/streamstest"
)

func byLength(r *streams.Record[string, string], n int32) int32 { return int32(len(r.Value)) % n }

func TestPartitionBy(t *testing.T) {
	t.Parallel()
	app := streams.New("a")
	in := app.Stream[string, string]("in")
	in.To("out", streams.PartitionBy(byLength))
	in.Route(func(string, string) string { return "routed" }, streams.PartitionBy(byLength))
	in.Repartition(streams.As("moved"), streams.Partitions(5), streams.PartitionBy(byLength)).
		TryMapValues(func(ctx context.Context, r *streams.Record[string, string]) (string, error) { return r.Value, nil }).To("moved-out")
	d := streamstest.New(t, app, streamstest.TopicPartitions("out", 3), streamstest.TopicPartitions("routed", 4))
	values := []string{"", "a", "bb", "ccc", "dddd", "eeeee"}
	for _, v := range values {
		d.In[string, string]("in").Send("same key", v)
	}
	for topic, n := range map[string]int{"out": 3, "routed": 4, "a-moved-repartition": 5} {
		for p := range n {
			var want, got []string
			for _, v := range values {
				if len(v)%n == p {
					want = append(want, v)
				}
			}
			for _, r := range d.Topic(topic, int32(p)) {
				got = append(got, string(r.Value))
			}
			if strings.Join(got, ",") != strings.Join(want, ",") {
				t.Errorf("partition %d of %s has %q, want %q", p, topic, got, want)
			}
		}
		if rest := d.Topic(topic, int32(n)); rest != nil {
			t.Errorf("topic %s has more than %d partitions", topic, n)
		}
	}
	if got := len(d.Out[string, string]("moved-out").Records()); got != len(values) {
		t.Errorf("%d records came through the repartition topic", got)
	}
}

func TestPartitionOutOfRange(t *testing.T) {
	t.Parallel()
	app := streams.New("a")
	app.Stream[string, string]("in").To("out", streams.PartitionBy(func(*streams.Record[string, string], int32) int32 { return 2 }), streams.OnError(streams.Always(streams.DeadLetter("dead"))))
	d := streamstest.New(t, app, streamstest.Partitions(2))
	d.In[string, string]("in").Send("k", "v")
	dead := d.Written()
	if len(dead) != 1 || dead[0].Topic != "dead" || dead[0].Headers.Get("__streams.errors.message") != "partition 2 was chosen, topic out has 2" {
		t.Errorf("written is %+v", dead)
	}
}

func TestPartitionMistakes(t *testing.T) {
	t.Parallel()
	app := streams.New("a")
	in := app.Stream[string, int]("in")
	in.To("out", streams.PartitionBy(byLength))
	in.Repartition(streams.As("r"), streams.Partitions(-1))
	in.SelectKey(func(int) string { return "" }).GroupByKey(streams.Partitions(3)).Count()
	_, err := app.Topology()
	for _, want := range []string{
		"node in.to: the records are (string, int), PartitionBy has a func(*streams.Record[string,string], int32) int32",
		"a repartition topic of -1 partitions", "option Partitions has no effect here",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	// A number that does not go with what it is joined with.
	app = streams.New("a")
	app.Stream[string, string]("in").Repartition(streams.As("r"), streams.Partitions(3)).
		JoinTable(app.Table[string, string]("t"), func(a, b string) string { return a + b }).To("out")
	var fatal refusal
	streamstest.New(&fatal, app, streamstest.TopicPartitions("t", 2))
	if want := "a-r-repartition has 3, t has 2"; !strings.Contains(string(fatal), want) {
		t.Errorf("error is %q, want %q", fatal, want)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	app := streams.New("a")
	app.Stream[string, int]("in").Print(&out, "seen")
	d := streamstest.New(t, app)
	d.In[string, int]("in").Send("a", 1)
	d.In[string, int]("in").Delete(d.Now(), "b")
	if got := out.String(); got != "[seen]: a, 1\n[seen]: b, null\n" {
		t.Errorf("printed is %q", got)
	}
	app = streams.New("a")
	app.Stream[string, int]("in").Print(full{}, "seen")
	d = streamstest.New(t, app)
	if err := d.In[string, int]("in").Try(d.Now(), "a", 1); !errors.As(err, new(*streams.Failure)) {
		t.Errorf("an error of the writer: %v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

// refusal keeps what a driver would fail a test with.
type refusal string

func (*refusal) Helper()                             {}
func (r *refusal) Fatalf(format string, args ...any) { *r += refusal(fmt.Sprintf(format, args...)) }
