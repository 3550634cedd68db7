package main

import (
	"github.com/millrace/millrace/benchmarks/figures"
)

// row is a line of the table: a figure of ours against one of theirs, and what is asked of the ratio.
type row struct {
	what   string
	sync   string // ours / theirs: when an acknowledgement leaves
	figure string // of ours
	// against is the figure it is held against, of Kafka; the same one when empty. own: of ours.
	against string
	own     bool
	atLeast figures.Goal
	reach   figures.Goal
	// bound is a limit that no broker can pass: the figure of what the client allows (the same name, measured on the
	// in-memory broker), or of the disk. 90 % of the client's own limit counts as reached.
	client bool
	disk   string
}

const (
	bothUnsynced = "page cache / page cache"
	oursSynced   = "fsync / page cache"
	bothSynced   = "fsync / fsync"
	noSync       = "–"
)

// section3 is the table that the project promises: what is asked for, row by row.
var section3 = []row{
	{what: "start on a fresh folder, to the first answered request", sync: noSync, figure: "start", atLeast: figures.FasterBy(50), reach: figures.FasterBy(100)},
	{what: "memory, idle", sync: noSync, figure: "memory-idle", atLeast: figures.OneIn(10), reach: figures.OneIn(20)},
	{what: "memory after the whole run", sync: noSync, figure: "memory-after", atLeast: figures.OneIn(8), reach: figures.OneIn(15)},
	{what: "produce 100 B, 6 partitions", sync: oursSynced, figure: "produce-100", client: true, atLeast: figures.AsMuch(1.2), reach: figures.AsMuch(1.5)},
	{what: "… broker CPU per record", sync: oursSynced, figure: "produce-cpu-100", atLeast: figures.AtMost(0.8), reach: figures.AtMost(0.5)},
	{what: "produce 1 KB, 6 partitions", sync: oursSynced, figure: "produce-1000", client: true, atLeast: figures.AsMuch(1.2), reach: figures.AsMuch(1.5)},
	{what: "… broker CPU per record", sync: oursSynced, figure: "produce-cpu-1000"},
	{what: "consume 100 B", sync: noSync, figure: "consume-100", client: true, atLeast: figures.AsMuch(1.0), reach: figures.AsMuch(1.2)},
	{what: "… broker CPU per KB", sync: noSync, figure: "consume-cpu-100", atLeast: figures.AtMost(1.0), reach: figures.AtMost(0.7)},
	{what: "consume 1 KB", sync: noSync, figure: "consume-1000", client: true, atLeast: figures.AsMuch(1.0), reach: figures.AsMuch(1.2)},
	{what: "… broker CPU per KB", sync: noSync, figure: "consume-cpu-1000", atLeast: figures.AtMost(1.0), reach: figures.AtMost(0.7)},
	{what: "a record every ms: ack p50", sync: bothUnsynced, figure: "paced-p50", client: true, atLeast: figures.AtMost(0.5), reach: figures.UpTo("the client's ceiling")},
	{what: "a record every ms: ack p99", sync: bothUnsynced, figure: "paced-p99", client: true, atLeast: figures.AtMost(0.3), reach: figures.UpTo("the client's ceiling")},
	{what: "… broker CPU per record", sync: bothUnsynced, figure: "paced-cpu"},
	{what: "one record at a time, 1 client", sync: bothSynced, figure: "acks-1", client: true, disk: "disk-syncs", atLeast: figures.AsMuch(1.2), reach: figures.UpTo("the disk's limit")},
	{what: "… broker CPU per record", sync: bothSynced, figure: "acks-1-cpu"},
	{what: "one record at a time, 32 clients", sync: bothSynced, figure: "acks-32", client: true, atLeast: figures.AsMuch(5), reach: figures.AsMuch(8)},
	{what: "… broker CPU per record", sync: bothSynced, figure: "acks-32-cpu"},
	{what: "one record at a time, 128 clients", sync: bothSynced, figure: "acks-128", client: true, atLeast: figures.AsMuch(7), reach: figures.AsMuch(10)},
	{what: "… broker CPU per record", sync: bothSynced, figure: "acks-128-cpu"},
	{what: "ours synced against Kafka unsynced, 32 clients", sync: oursSynced, figure: "acks-shipped-32", client: true, atLeast: figures.AsMuch(1), reach: figures.AsMuch(1.7)},
	{what: "… broker CPU per record", sync: oursSynced, figure: "acks-shipped-32-cpu"},
	{what: "128 clients over 1,000 partitions against the same over 6, ours", sync: "fsync", figure: "acks-128-wide", against: "acks-128", own: true,
		atLeast: figures.AsMuch(0.25), reach: figures.AsMuch(0.6)},
	{what: "128 clients over 1,000 partitions, against Kafka", sync: bothSynced, figure: "acks-128-wide", client: true},
	{what: "transactions of 10 records, 1 client", sync: oursSynced, figure: "txn-1", client: true, atLeast: figures.AsMuch(10), reach: figures.AsMuch(25)},
	{what: "… broker CPU per transaction", sync: oursSynced, figure: "txn-1-cpu"},
	{what: "transactions of 10 records, 8 clients", sync: oursSynced, figure: "txn-8", client: true, atLeast: figures.AsMuch(8), reach: figures.AsMuch(15)},
	{what: "… broker CPU per transaction", sync: oursSynced, figure: "txn-8-cpu"},
	{what: "transactions of 10 records, 32 clients", sync: oursSynced, figure: "txn-32", client: true, atLeast: figures.AsMuch(30), reach: figures.AsMuch(100)},
	{what: "… broker CPU per transaction", sync: oursSynced, figure: "txn-32-cpu"},
	{what: "… until each of 32 new clients has committed its first", sync: oursSynced, figure: "txn-32-first"},
	{what: "consume, transform, produce in 100 ms transactions", sync: oursSynced, figure: "pipeline", client: true, atLeast: figures.AsMuch(1.3), reach: figures.AsMuch(2)},
	{what: "… broker CPU per record", sync: oursSynced, figure: "pipeline-cpu"},
	{what: "1,000 topics: create", sync: oursSynced, figure: "topics-create", atLeast: figures.FasterBy(1)},
	{what: "1,000 topics: first record in each", sync: oursSynced, figure: "topics-first", atLeast: figures.FasterBy(2)},
	{what: "1,000 topics: open files", sync: noSync, figure: "topics-files", atLeast: figures.AtMost(0.5)},
	{what: "ready after SIGKILL with 2.3 GB and 1,000 topics", sync: noSync, figure: "restart", atLeast: figures.FasterBy(30), reach: figures.FasterBy(100)},
}

// verdict is what came out of a row.
type verdict struct {
	ratio string
	said  string
}

const enoughOfCeiling = 0.9

// judge compares medians. A row that lacks a side says so.
func (r row) judge(t *figures.Collected, f figures.Figure) verdict {
	ours, theirs := t.Spread(ourSide, r.figure), t.Spread(kafkaSide, r.figure)
	if r.against != "" {
		theirs = t.Spread(kafkaSide, r.against)
		if r.own {
			theirs = t.Spread(ourSide, r.against)
		}
	}
	if ours.Rounds == 0 || theirs.Rounds == 0 || theirs.Median == 0 || ours.Median == 0 {
		return verdict{"", "not measured"}
	}
	ratio := ours.Median / theirs.Median
	reads := r.atLeast.Reads
	if reads == 0 {
		reads = figures.Times
	}
	v := verdict{ratio: reads.Format(ratio)}
	if !r.atLeast.Asked() {
		return v
	}
	atCeiling := r.client && nearly(ours, t.Spread(clientSide, r.figure), f)
	atDisk := r.disk != "" && nearly(ours, t.Spread(diskSide, r.disk), f)
	switch {
	case r.reach.IsNumber() && r.reach.Reached(ratio):
		v.said = "yes, and what to reach for"
	case r.reach.Words != "" && (atCeiling || atDisk):
		v.said = "yes, and what to reach for"
	case r.atLeast.Reached(ratio):
		v.said = "yes"
	case atCeiling:
		v.said = "yes: 90 % of the client's ceiling"
	default:
		v.said = "**no**"
	}
	return v
}

// nearly says whether ours is within a tenth of a limit.
func nearly(ours, limit figures.Spread, f figures.Figure) bool {
	if limit.Rounds == 0 || limit.Median == 0 {
		return false
	}
	if f.Less {
		return ours.Median*enoughOfCeiling <= limit.Median
	}
	return ours.Median >= enoughOfCeiling*limit.Median
}
