package main

import "github.com/millrace/millrace/benchmarks/figures"

// row is a line of the table of goals: a figure of one side against one of another.
type row struct {
	what    string
	figure  string
	side    figures.Side
	against string // the same figure when empty
	than    figures.Side
	atLeast figures.Goal
	reach   figures.Goal
}

// asked is the table that the project promises.
var asked = []row{
	{"filter and map", "map", ours, "", kstreams, figures.AsMuch(4), figures.AsMuch(8)},
	{"count per key, every update out", "count", ours, "", kstreams, figures.AsMuch(5), figures.AsMuch(10)},
	{"count per key, updates merged per commit", "merged", ours, "", kstreams, figures.AsMuch(5), figures.AsMuch(15)},
	{"count per key and minute, grace", "minute", ours, "", kstreams, figures.AsMuch(7), figures.AsMuch(15)},
	{"filter and map", "map", oursOnKafka, "", kstreams, figures.AsMuch(3), figures.AsMuch(6)},
	{"count per key, every update out", "count", oursOnKafka, "", kstreams, figures.AsMuch(3), figures.AsMuch(6)},
	{"count per key, updates merged per commit", "merged", oursOnKafka, "", kstreams, figures.AsMuch(3), figures.AsMuch(6)},
	{"count per key and minute, grace", "minute", oursOnKafka, "", kstreams, figures.AsMuch(3), figures.AsMuch(6)},
	{"count, exactly once, against goka at least once, each count sent", "count", ours, "", gokaSide, figures.AsMuch(6), figures.AsMuch(12)},
	{"count, exactly once, against goka at least once, each count sent", "count", oursOnKafka, "", gokaSide, figures.Goal{}, figures.Goal{}},
	{"count merged, exactly once, against goka at least once, none sent", "merged", ours, "kept", gokaSide, figures.Goal{}, figures.Goal{}},
	{"memory, filter and map", "map-peak", ours, "", kstreams, figures.OneIn(5), figures.OneIn(10)},
	{"memory, count, every update out", "count-peak", ours, "", kstreams, figures.OneIn(5), figures.OneIn(10)},
	{"memory, count, updates merged", "merged-peak", ours, "", kstreams, figures.OneIn(5), figures.OneIn(10)},
	{"memory, count per key and minute", "minute-peak", ours, "", kstreams, figures.OneIn(5), figures.OneIn(10)},
}

// verdict is what came out of a row.
type verdict struct{ ratio, said string }

// judge compares medians, as measured.
func (r row) judge(c *figures.Collected) verdict {
	mine, theirs := c.Spread(r.side, r.figure), c.Spread(r.than, r.other())
	if mine.Rounds == 0 || theirs.Rounds == 0 || theirs.Median == 0 {
		return verdict{"", "not measured"}
	}
	ratio, reads := mine.Median/theirs.Median, r.atLeast.Reads
	if reads == 0 {
		reads = figures.Times
	}
	v := verdict{ratio: reads.Format(ratio)}
	switch {
	case !r.atLeast.Asked():
	case r.reach.IsNumber() && r.reach.Reached(ratio):
		v.said = "yes, and what to reach for"
	case r.atLeast.Reached(ratio):
		v.said = "yes"
	default:
		v.said = "**no**"
	}
	return v
}

func (r row) other() string {
	if r.against != "" {
		return r.against
	}
	return r.figure
}
