package twophase

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/broker/brokertest"
)

var (
	brokersFlag = flag.String("brokers", "", "a broker with transaction.two.phase.commit.enable to compare with Kafka's column, host:port")
	offFlag     = flag.String("off", "", "the same without it")
	rewrite     = flag.Bool("rewrite", false, "write the column instead of comparing")
)

// fresh asks as a new incarnation does.
func fresh(twoPhase, keep bool) initial { return initial{from: nobody, twoPhase: twoPhase, keep: keep} }

// open begins a transaction of two-phase commit.
func open(p *player) {
	p.init(fresh(true, false))
	p.produce(p.last, 0)
	p.said = nil
}

// A case names a request in a state; off marks those for a broker that does not take part.
var cases = []struct {
	name string
	off  bool
	play func(*player)
}{
	{"switched off: Enable2Pc", true, func(p *player) { p.init(fresh(true, false)) }},
	{"switched off: KeepPreparedTxn", true, func(p *player) { p.init(fresh(false, true)) }},
	{"switched off: both", true, func(p *player) { p.init(fresh(true, true)) }},
	{"switched off: neither, version 6", true, func(p *player) { p.init(fresh(false, false)) }},
	{"unknown id: Enable2Pc", false, func(p *player) { p.init(fresh(true, false)) }},
	{"unknown id: KeepPreparedTxn", false, func(p *player) { p.init(fresh(true, true)) }},
	{"unknown id: KeepPreparedTxn without Enable2Pc", false, func(p *player) { p.init(fresh(false, true)) }},
	{"timeout above the limit without Enable2Pc", false, func(p *player) {
		p.init(initial{from: nobody, timeoutMs: 24 * 3600 * 1000})
	}},
	{"timeout above the limit with Enable2Pc", false, func(p *player) {
		p.init(initial{from: nobody, timeoutMs: 24 * 3600 * 1000, twoPhase: true})
	}},
	{"timeout below 0 with Enable2Pc", false, func(p *player) { p.init(initial{from: nobody, timeoutMs: -5, twoPhase: true}) }},
	{"producer id without epoch", false, func(p *player) { p.init(initial{from: identity{5, -1}, twoPhase: true, keep: true}) }},
	{"open: DescribeTransactions", false, func(p *player) {
		open(p)
		p.describe()
	}},
	{"open: EndTxn(commit)", false, func(p *player) {
		open(p)
		p.end(p.last, true)
		p.init(fresh(true, false))
	}},
	{"open: InitProducerId without keeping, then the old EndTxn", false, func(p *player) {
		open(p)
		p.init(fresh(true, false))
		p.end(p.began, true)
	}},
	{"open: KeepPreparedTxn", false, func(p *player) {
		open(p)
		p.init(fresh(true, true))
	}},
	{"open: KeepPreparedTxn by its own producer, twice", false, func(p *player) {
		open(p)
		p.init(initial{from: p.began, twoPhase: true, keep: true})
		p.init(initial{from: p.began, twoPhase: true, keep: true})
	}},
	{"open: KeepPreparedTxn by another epoch", false, func(p *player) {
		open(p)
		p.init(initial{from: identity{p.began.id, p.began.epoch + 7}, twoPhase: true, keep: true})
	}},
	{"kept: DescribeTransactions", false, kept(func(p *player) { p.describe() })},
	{"kept: KeepPreparedTxn again", false, kept(func(p *player) { p.init(fresh(true, true)) })},
	{"kept: Produce with the old epoch, to a further partition", false, kept(func(p *player) {
		p.sequence = [2]int32{}
		p.produce(p.began, 1)
	})},
	{"kept: Produce with the old epoch, to a partition of the transaction", false, kept(func(p *player) {
		p.sequence = [2]int32{1, 0}
		p.produce(p.began, 0)
	})},
	{"kept: Produce with the new epoch", false, kept(func(p *player) { p.produce(p.last, 0) })},
	{"kept: EndTxn(commit) with the old epoch", false, kept(func(p *player) { p.end(p.began, true) })},
	{"kept: EndTxn(abort) with the old epoch", false, kept(func(p *player) { p.end(p.began, false) })},
	{"kept: EndTxn(commit), again, abort", false, kept(func(p *player) {
		owner := p.last
		p.end(owner, true)
		p.end(owner, true)
		p.end(owner, false)
	})},
	{"kept: EndTxn(abort), again, commit", false, kept(func(p *player) {
		owner := p.last
		p.end(owner, false)
		p.end(owner, false)
		p.end(owner, true)
	})},
	{"kept: InitProducerId without keeping, then EndTxn", false, kept(func(p *player) {
		owner := p.last
		p.init(fresh(true, false))
		p.end(owner, true)
	})},
	{"kept and committed: KeepPreparedTxn", false, kept(func(p *player) {
		p.end(p.last, true)
		p.said = nil
		p.init(fresh(true, true))
	})},
	{"kept and committed: the next transaction", false, kept(func(p *player) {
		p.end(p.last, true)
		p.produce(p.last, 0)
		p.end(p.last, true)
	})},
}

// kept plays behind a transaction that was kept, or says that it could not be.
func kept(play func(*player)) func(*player) {
	return func(p *player) {
		open(p)
		p.init(fresh(true, true))
		if strings.HasPrefix(p.said[0], "UNSUPPORTED") {
			p.said = []string{"(not reached)"}
			return
		}
		p.said = nil
		play(p)
	}
}

const answersFile = "testdata/answers.txt"

// answers is the file: for each case a column for Kafka and one for this broker.
func answers(t *testing.T) map[string][2]string {
	t.Helper()
	b, err := os.ReadFile(answersFile)
	if err != nil && !*rewrite {
		t.Fatal(err)
	}
	out := map[string][2]string{}
	for line := range strings.Lines(string(b)) {
		cols := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cols) == 3 {
			out[cols[0]] = [2]string{cols[1], cols[2]}
		}
	}
	return out
}

// TestAnswers plays all cases and compares with the column of the broker that is asked.
func TestAnswers(t *testing.T) {
	column, want := 1, answers(t)
	var on, off []kgo.Opt
	if *brokersFlag != "" {
		column = 0
		on, off = []kgo.Opt{kgo.SeedBrokers(*brokersFlag)}, []kgo.Opt{kgo.SeedBrokers(*offFlag)}
	} else {
		for _, c := range []struct {
			takesPart bool
			opts      *[]kgo.Opt
		}{{true, &on}, {false, &off}} {
			b := brokertest.Start(t, brokertest.Configure(func(cfg *broker.Config) { cfg.TransactionTwoPhaseCommit = c.takesPart }))
			*c.opts = []kgo.Opt{kgo.SeedBrokers(b.Seeds()...), kgo.Dialer(b.Dial)}
		}
	}
	if len(want) != len(cases) && !*rewrite {
		t.Errorf("%s has %d cases, the test %d", answersFile, len(want), len(cases))
	}
	var file strings.Builder
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			opts := on
			if c.off {
				opts = off
			}
			p := newPlayer(t, opts...)
			c.play(p)
			got := strings.Join(p.said, "; ")
			row := want[c.name]
			if *rewrite {
				row[column] = got
			} else if row[column] != got {
				t.Errorf("got %s, want %s", got, row[column])
			}
			fmt.Fprintf(&file, "%s\t%s\t%s\n", c.name, row[0], row[1])
		})
	}
	if *rewrite && !t.Failed() {
		if err := os.WriteFile(answersFile, []byte(file.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
