package registry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/serde/avro"
	"github.com/millrace/millrace/streams/serde/registry"
	"github.com/millrace/millrace/streams/serde/registry/registrytest"
	"github.com/millrace/millrace/streams/streamstest"
)

type sale struct {
	User  string `avro:"user"`
	Cents int64  `avro:"cents"`
}

type account struct {
	Cents int64 `avro:"cents"`
	N     int32 `avro:"n"`
}

const (
	saleSchema    = `{"type":"record","name":"Sale","namespace":"shop","fields":[{"name":"user","type":"string"},{"name":"cents","type":"long"}]}`
	accountSchema = `{"type":"record","name":"Account","namespace":"shop","fields":[{"name":"cents","type":"long"},{"name":"n","type":"int"}]}`
)

// accounts is a job with a repartition topic, a store and a sink.
func accounts(id string, c *registry.Client, opts ...registry.Opt) *streams.App {
	app := streams.New(id)
	app.RegisterSerde(registry.Of(c, avro.New[sale](saleSchema), opts...))
	app.RegisterSerde(registry.Of(c, avro.New[account](accountSchema), opts...))
	app.Stream[string, sale]("sales").
		GroupBy(func(s sale) string { return s.User }, streams.As("by-user")).
		Aggregate(streams.Fold(func() account { return account{} }, func(a account, s sale) account {
			return account{a.Cents + s.Cents, a.N + 1}
		}), streams.As("accounts")).
		To("accounts-out")
	return app
}

// TestSubjectsOfRegroupedTables: the changes of a table that is grouped anew carry
// their schema too.
func TestSubjectsOfRegroupedTables(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	app := streams.New("shop")
	app.RegisterSerde(registry.Of(registryAt(t, r.URL), avro.New[sale](saleSchema), registry.AutoRegister()))
	app.Table[string, sale]("sales").
		GroupBy(func(_ string, s sale) (string, sale) { return s.User, s }, streams.As("by-user")).
		Aggregate(streams.Total(func(s sale) int64 { return s.Cents }), streams.As("totals")).
		To("totals-out")
	d := streamstest.New(t, app)
	in := d.In[string, sale]("sales")
	in.Send("s1", sale{"ann", 950})
	in.Send("s1", sale{"bob", 50})
	if got := d.Out[string, int64]("totals-out").Records(); len(got) != 3 || got[1].Value != 0 || got[2].Value != 50 {
		t.Errorf("%v", got)
	}
	if got := r.Subject("shop-by-user-repartition-value"); !slices.Equal(got, []string{saleSchema}) {
		t.Errorf("%v", got)
	}
}

func registryAt(t *testing.T, url string) *registry.Client {
	t.Helper()
	c, err := registry.Open(registry.Config{URLs: []string{url}, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSubjectsOfAJob: a serde found by type has the subject of each topic that it
// writes to, the job's own included.
func TestSubjectsOfAJob(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	c, err := registry.Open(registry.Config{URLs: []string{r.URL}})
	if err != nil {
		t.Fatal(err)
	}
	d := streamstest.New(t, accounts("shop", c, registry.AutoRegister()), streamstest.Partitions(2))
	in, out := d.In[string, sale]("sales"), d.Out[string, account]("accounts-out")
	in.Send("", sale{"ann", 950})
	in.Send("", sale{"ann", 50})
	d.Crash()
	in.Send("", sale{"bob", 7})
	in.Send("", sale{"ann", 1})
	got := map[string]account{}
	for _, rec := range out.Records() {
		got[rec.Key] = rec.Value
	}
	if want := (account{1001, 3}); got["ann"] != want || got["bob"] != (account{7, 1}) {
		t.Errorf("%v", got)
	}
	for subject, schema := range map[string]string{
		"sales-value":                    saleSchema, // by the test
		"shop-by-user-repartition-value": saleSchema,
		"shop-accounts-changelog-value":  accountSchema,
		"accounts-out-value":             accountSchema,
	} {
		if got := r.Subject(subject); !slices.Equal(got, []string{schema}) {
			t.Errorf("subject %s has %v", subject, got)
		}
	}
}

// TestStartIsRefusedWhileSchemasAreMissing: every subject that the job would write
// to is looked up before it takes work, and all that is wrong is one error.
func TestStartIsRefusedWhileSchemasAreMissing(t *testing.T) {
	t.Parallel()
	r := registrytest.Start(t)
	c, err := registry.Open(registry.Config{URLs: []string{r.URL}})
	if err != nil {
		t.Fatal(err)
	}
	nobody := streams.Brokers("127.0.0.1:1")
	err = accounts("shop", c).Run(context.Background(), nobody)
	for _, want := range []string{
		"subject shop-by-user-repartition-value", "subject shop-accounts-changelog-value", "subject accounts-out-value",
		"node accounts.to, value of type registry_test.account",
	} {
		if !errors.Is(err, registry.ErrNotRegistered) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "subject sales-value") {
		t.Errorf("nothing is written to sales: %v", err)
	}
	r.Refuse("accounts-out-value", "no more fields please")
	if err = accounts("shop", c, registry.AutoRegister()).Run(context.Background(), nobody); !errors.Is(err, registry.ErrIncompatible) ||
		!strings.Contains(err.Error(), "no more fields please") || !strings.Contains(err.Error(), "subject accounts-out-value") {
		t.Errorf("%v", err)
	}
	r.Stop()
	err = accounts("other", registryAt(t, r.URL), registry.AutoRegister()).Run(context.Background(), nobody)
	if !errors.Is(err, serde.ErrUnavailable) || !strings.Contains(err.Error(), r.URL) {
		t.Errorf("%v", err)
	}
}

// TestMistakesInSerdesComeTogether: types without a serde and serdes with a mistake
// are one error when the topology is built.
func TestMistakesInSerdesComeTogether(t *testing.T) {
	t.Parallel()
	type odd struct{ C chan int }
	app := streams.New("shop")
	app.RegisterSerde(avro.New[sale](`{"type":"record"}`))
	app.Stream[string, sale]("sales").Filter(func(sale) bool { return true }).To("out")
	app.Stream[string, odd]("odd").To("odd-out")
	app.Stream[string, account]("accounts", streams.ValSerde(avro.New[account](`{`))).GroupByKey().Count(streams.As("n"))
	_, err := app.Topology()
	for _, want := range []string{
		"node sales, value of type registry_test.sale: avro: schema: ",
		"node odd, value of type registry_test.odd: no serde for type",
		"node accounts, value of type registry_test.account: avro: schema: ",
	} {
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("%v, want once %s", err, want)
		}
	}
}

// outage is a serde that can not say what bytes are while it is down.
type outage struct{ down *atomic.Int64 }

func (outage) Append(dst []byte, v sale) ([]byte, error) {
	return fmt.Appendf(dst, "%s %d", v.User, v.Cents), nil
}

func (o outage) Decode(b []byte) (v sale, err error) {
	if o.down.Add(-1) >= 0 {
		return v, fmt.Errorf("registry: %w", serde.ErrUnavailable)
	}
	_, err = fmt.Sscanf(string(b), "%s %d", &v.User, &v.Cents)
	return v, err
}

// TestRowsSurviveAnOutage: a table that is restored while the registry is down does
// not take its rows for ones that can not be decoded.
func TestRowsSurviveAnOutage(t *testing.T) {
	t.Parallel()
	s := outage{new(atomic.Int64)}
	app := streams.New("shop")
	app.RegisterSerde(s)
	users := app.Table[string, sale]("sales")
	app.Stream[string, string]("asks").JoinTable(users, func(_ string, s sale) string { return s.User }).To("answers")
	d := streamstest.New(t, app)
	d.In[string, sale]("sales").Send("s1", sale{"ann", 950})
	s.down.Store(100)
	d.Crash()
	s.down.Store(0)
	d.In[string, string]("asks").Send("s1", "?")
	if got := d.Out[string, string]("answers").Records(); len(got) != 1 || got[0].Value != "ann" {
		t.Errorf("%v", got)
	}
}

// TestOutageIsTriedAgain: a handler tells an outage from a bad record.
func TestOutageIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := outage{new(atomic.Int64)}
	app := streams.New("shop", streams.OnError(badOnly))
	app.RegisterSerde(s)
	app.Stream[string, sale]("sales").MapValues(func(s sale) string { return s.User }).To("out")
	d := streamstest.New(t, app)
	s.down.Store(3)
	d.In[string, sale]("sales").Send("k", sale{"ann", 950})
	d.In[string, string]("sales").Send("k", "bad")
	if got := d.Out[string, string]("out").Records(); len(got) != 1 || got[0].Value != "ann" {
		t.Errorf("%v", got)
	}
	if got := d.Out[string, string]("sales-dead").Records(); len(got) != 1 || got[0].Value != "bad" {
		t.Errorf("dead letters %v", got)
	}
}

// badOnly is the handler that docs/streams/serdes.md shows.
func badOnly(_ context.Context, f streams.Failure) streams.Decision {
	if errors.Is(f.Err, serde.ErrUnavailable) {
		return streams.Retry(5, 200*time.Millisecond) // then the job fails; what has come stays where it is
	}
	return streams.DeadLetter(f.Topic + "-dead")
}
