package twophase_test

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
	"github.com/millrace/millrace/txn/session"
	"github.com/millrace/millrace/txn/twophase"
)

// direction is one of the two ways, by name.
type direction string

const (
	byStore direction = "the store decides"
	byLog   direction = "the log decides"
)

var directions = []direction{byStore, byLog}

var steps = []twophase.Step{twophase.StepWork, twophase.StepWritten, twophase.StepPrepared, twophase.StepDecided, twophase.StepDone}

var errCrash = errors.New("the program crashed here")

// brokersFlag runs what needs no power over the broker against another one, as the log that decides.
var brokersFlag = flag.String("brokers", "", "run the tests of the log that decides against this cluster (host:port,…) too")

// world is a broker and a store that outlive programs.
type world struct {
	t       *testing.T
	way     direction
	cluster twophase.Cluster
	node    *brokertest.Node // nil against an address
	mem     *mem
	// prefix begins the names of topics and ids, so that tests against an address do not meet.
	prefix string
	// sent are the numbers of all transactions ever tried.
	sent int
	// sure are those whose Do returned nil, never those that were aborted for sure.
	sure, never map[int]bool
}

func newWorld(t *testing.T, way direction) *world {
	t.Helper()
	w := &world{t: t, way: way, mem: newMem(), sure: map[int]bool{}, never: map[int]bool{}}
	w.node = brokertest.StartNode(t, brokertest.Configure(func(c *broker.Config) { c.TransactionTwoPhaseCommit = true }))
	w.cluster = w.node
	w.createTopics()
	return w
}

// newForeignWorld is a world with the cluster of the flag.
func newForeignWorld(t *testing.T) *world {
	t.Helper()
	if *brokersFlag == "" {
		t.Skip("no -brokers")
	}
	w := &world{t: t, way: byLog, mem: newMem(), sure: map[int]bool{}, never: map[int]bool{}, prefix: strings.ToLower(rand.Text()[:8]) + "-"}
	w.cluster = twophase.Brokers(strings.Split(*brokersFlag, ",")...)
	w.createTopics()
	return w
}

func (w *world) createTopics() {
	w.t.Helper()
	w.admin(func(adm *kadm.Client) {
		if _, err := adm.CreateTopics(w.ctx(), 2, 1, nil, w.prefix+"out", w.prefix+"more"); err != nil {
			w.t.Fatal(err)
		}
	})
}

// ctx bounds one operation; only a fault lets it end.
func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) admin(f func(*kadm.Client)) {
	w.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.cluster.Seeds()...), kgo.Dialer(w.cluster.Dial))
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	f(kadm.NewClient(cl))
}

type committer = twophase.Committer[*pending]

func (w *world) tryOpen(onStep func(twophase.Step) error) (*committer, error) {
	o := twophase.Options{TransactionalID: w.prefix + "orders", DecisionTopic: w.prefix + "decisions", OnStep: onStep}
	if w.way == byStore {
		return twophase.OpenStoreDecides(w.ctx(), w.cluster, w.mem, o)
	}
	return twophase.OpenLogDecides(w.ctx(), w.cluster, w.mem, o)
}

func (w *world) open(onStep func(twophase.Step) error) *committer {
	w.t.Helper()
	c, err := w.tryOpen(onStep)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

// work writes the number to the store and to three partitions of two topics.
func (w *world) work(n int) func(*twophase.Txn[*pending]) error {
	return func(tx *twophase.Txn[*pending]) error {
		tx.Store.Insert(n)
		value := []byte(strconv.Itoa(n))
		for _, r := range []session.Record{
			{Topic: w.prefix + "out", Partition: 0, Value: value}, {Topic: w.prefix + "out", Partition: 1, Value: value},
			{Topic: w.prefix + "more", Partition: session.ByKey, Key: value, Value: value},
		} {
			if err := tx.Send(w.ctx(), r); err != nil {
				return err
			}
		}
		return nil
	}
}

// do tries the next number and notes what Do says.
func (w *world) do(c *committer) error {
	w.sent++
	n := w.sent
	err := c.Do(w.ctx(), w.work(n))
	switch {
	case err == nil:
		w.sure[n] = true
	case errors.Is(err, twophase.ErrAborted):
		w.never[n] = true
	}
	return err
}

// check compares the store with what a read_committed reader sees up to the end of the log, which it must reach.
func (w *world) check() []int {
	w.t.Helper()
	rows := w.mem.has()
	for n := range w.sure {
		if !slices.Contains(rows, n) {
			w.t.Errorf("%d was committed and is not in the store", n)
		}
	}
	for n := range w.never {
		if slices.Contains(rows, n) {
			w.t.Errorf("%d was aborted and is in the store", n)
		}
	}
	got := map[string][]int{}
	for _, part := range []session.TopicPartition{{Topic: w.prefix + "out", Partition: 0}, {Topic: w.prefix + "out", Partition: 1}} {
		got[fmt.Sprintf("out-%d", part.Partition)] = w.read(part)
	}
	got["more"] = append(w.read(session.TopicPartition{Topic: w.prefix + "more", Partition: 0}), w.read(session.TopicPartition{Topic: w.prefix + "more", Partition: 1})...)
	slices.Sort(got["more"])
	for where, ns := range got {
		if !slices.Equal(ns, rows) {
			w.t.Errorf("%s has %v, the store has %v", where, ns, rows)
		}
	}
	return rows
}

// read is the committed log of a partition. It ends the test when an open transaction stands in the way.
func (w *world) read(part session.TopicPartition) []int {
	w.t.Helper()
	ctx := w.ctx()
	cluster, err := session.Connect(ctx, session.ClusterOptions{Seeds: w.cluster.Seeds(), Dial: w.cluster.Dial})
	if err != nil {
		w.t.Fatal(err)
	}
	defer cluster.Close()
	end, err := cluster.List(ctx, session.End, []session.TopicPartition{part})
	if err != nil {
		w.t.Fatal(err)
	}
	reader := cluster.NewReader(session.ReaderOptions{})
	defer reader.Close()
	feed := reader.Add(part, 0)
	var out []int
	for {
		for r, ok := feed.Head(); ok; r, ok = feed.Head() {
			n, err := strconv.Atoi(string(r.Value))
			if err != nil {
				w.t.Fatal(err)
			}
			out = append(out, n)
			feed.Pop()
		}
		if feed.Position() >= end[part] {
			return out
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("%v: reader stands at %d, the log ends at %d", part, feed.Position(), end[part])
		case <-reader.Arrived():
		}
	}
}

// crashAt makes a hook that fails at the step, the n-th time it comes by.
func crashAt(step twophase.Step, n int) func(twophase.Step) error {
	return func(s twophase.Step) error {
		if s == step {
			if n--; n == 0 {
				return errCrash
			}
		}
		return nil
	}
}
