package main

import (
	"github.com/millrace/millrace/benchmarks/figures"
	"github.com/millrace/millrace/benchmarks/streams/nexmark"
)

// row is a line of the table of goals: a figure of one side against one of another.
type row struct {
	what    string
	figure  string
	side    figures.Side
	against string // the same figure when empty
	than    figures.Side
	atLeast figures.Goal
	reach   figures.Goal
	// under and reachUnder ask for a limit in the unit of the figure, in place of a ratio.
	under, reachUnder float64
}

// asked is the table that the project promises.
var asked = []row{
	{what: "filter and map", figure: "map", side: ours, than: kstreams, atLeast: figures.AsMuch(4), reach: figures.AsMuch(8)},
	{what: "count per key, every update out", figure: "count", side: ours, than: kstreams, atLeast: figures.AsMuch(5), reach: figures.AsMuch(10)},
	{what: "count per key, updates merged per commit", figure: "merged", side: ours, than: kstreams, atLeast: figures.AsMuch(5), reach: figures.AsMuch(15)},
	{what: "count per key and minute, grace", figure: "minute", side: ours, than: kstreams, atLeast: figures.AsMuch(7), reach: figures.AsMuch(15)},
	{what: "filter and map", figure: "map", side: oursOnKafka, than: kstreams, atLeast: figures.AsMuch(3), reach: figures.AsMuch(6)},
	{what: "count per key, every update out", figure: "count", side: oursOnKafka, than: kstreams, atLeast: figures.AsMuch(3), reach: figures.AsMuch(6)},
	{what: "count per key, updates merged per commit", figure: "merged", side: oursOnKafka, than: kstreams, atLeast: figures.AsMuch(3), reach: figures.AsMuch(6)},
	{what: "count per key and minute, grace", figure: "minute", side: oursOnKafka, than: kstreams, atLeast: figures.AsMuch(3), reach: figures.AsMuch(6)},
	{what: "count, exactly once, against goka at least once, each count sent", figure: "count", side: ours, than: gokaSide, atLeast: figures.AsMuch(6), reach: figures.AsMuch(12)},
	{what: "count, exactly once, against goka at least once, each count sent", figure: "count", side: oursOnKafka, than: gokaSide},
	{what: "count merged, exactly once, against goka at least once, none sent", figure: "merged", side: ours, against: "kept", than: gokaSide},
	{what: "memory, filter and map", figure: "map-peak", side: ours, than: kstreams, atLeast: figures.OneIn(5), reach: figures.OneIn(10)},
	{what: "memory, count, every update out", figure: "count-peak", side: ours, than: kstreams, atLeast: figures.OneIn(5), reach: figures.OneIn(10)},
	{what: "memory, count, updates merged", figure: "merged-peak", side: ours, than: kstreams, atLeast: figures.OneIn(5), reach: figures.OneIn(10)},
	{what: "memory, count per key and minute", figure: "minute-peak", side: ours, than: kstreams, atLeast: figures.OneIn(5), reach: figures.OneIn(10)},
	{what: "two workers: CPU of the job per record, against one worker", figure: "workers-cpu", side: ours, against: "count-cpu", than: ours, atLeast: figures.AtMost(2 / 1.7), reach: figures.AtMost(1)},
	{what: "two workers: rate, with the broker on the same two cores", figure: "workers", side: ours, against: "count", than: ours},
	{what: "many keys in the state, against 10,000 (Pebble)", figure: "keys-many", side: ours, against: "keys-few", than: ours, atLeast: figures.AsMuch(0.3), reach: figures.AsMuch(0.6)},
	{what: "restart after SIGKILL, to the first record", figure: "restart", side: ours, than: kstreams, under: 2000, reachUnder: 500},
	{what: "restart after SIGKILL, to the first record", figure: "restart", side: ours, against: "restart-transactional", than: kstreams},
	{what: "10,000 rec/s, commits every 100 ms: p99", figure: "latency-100-p99", side: ours, than: kstreams, atLeast: figures.AtMost(1), reach: figures.AtMost(0.5)},
	{what: "10,000 rec/s, commits every 10 ms: p99", figure: "latency-10-p99", side: ours, than: kstreams, atLeast: figures.AtMost(1), reach: figures.AtMost(0.5)},
	{what: "10,000 rec/s, commits every 100 ms: p99", figure: "latency-100-p99", side: oursOnKafka, than: kstreams, atLeast: figures.AtMost(1), reach: figures.AtMost(0.5)},
	{what: "10,000 rec/s, commits every 10 ms: p99", figure: "latency-10-p99", side: oursOnKafka, than: kstreams, atLeast: figures.AtMost(1), reach: figures.AtMost(0.5)},
}

// askedOfNexmark: that of ours on Apache Kafka against Kafka Streams on Apache Kafka, and of ours on our own broker, for
// each query.
func askedOfNexmark() []row {
	var rows []row
	for _, q := range nexmark.Names {
		rows = append(rows,
			row{what: q + ", " + queryTexts[q], figure: q, side: ours, than: kstreams, atLeast: figures.AsMuch(3), reach: figures.AsMuch(6)},
			row{what: q + ", " + queryTexts[q], figure: q, side: oursOnKafka, than: kstreams, atLeast: figures.AsMuch(3), reach: figures.AsMuch(6)})
	}
	return rows
}

// verdict is what came out of a row.
type verdict struct{ ratio, said string }

// judge compares medians, as measured.
func (r row) judge(c *figures.Collected) verdict {
	mine, theirs := c.Spread(r.side, r.figure), c.Spread(r.than, r.other())
	if mine.Rounds == 0 || theirs.Rounds == 0 || theirs.Median == 0 {
		return verdict{"", "not measured"}
	}
	if r.under > 0 {
		return verdict{figures.Part.Format(mine.Median / theirs.Median), said(mine.Median <= r.under, mine.Median <= r.reachUnder)}
	}
	ratio, reads := mine.Median/theirs.Median, r.atLeast.Reads
	if reads == 0 {
		reads = figures.Times
	}
	v := verdict{ratio: reads.Format(ratio)}
	if r.atLeast.Asked() {
		v.said = said(r.atLeast.Reached(ratio), r.reach.IsNumber() && r.reach.Reached(ratio))
	}
	return v
}

func (r row) other() string {
	if r.against != "" {
		return r.against
	}
	return r.figure
}

func said(enough, all bool) string {
	switch {
	case enough && all:
		return "yes, and what to reach for"
	case enough:
		return "yes"
	}
	return "**no**"
}

// judged says whether the row asks for anything.
func (r row) judged() bool { return r.atLeast.Asked() || r.under > 0 }

// goals are what the row asks for, in words.
func (r row) goals(unit string) (atLeast, reach string) {
	if r.under > 0 {
		return "< " + figures.Format(r.under, unit), "< " + figures.Format(r.reachUnder, unit)
	}
	return r.atLeast.String(), r.reach.String()
}
