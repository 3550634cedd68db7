package history

import "slices"

// Class names a kind of anomaly.
type Class string

// What the protocol promises and a history can refute.
const (
	InconsistentOffset Class = "inconsistent-offset"
	Duplicate          Class = "duplicate"
	Unwritten          Class = "unwritten"
	AbortedRead        Class = "aborted-read"
	PrecommittedRead   Class = "precommitted-read"
	LostWrite          Class = "lost-write"
	Unseen             Class = "unseen"
	PollSkip           Class = "poll-skip"
	PollBack           Class = "poll-back"
	InnerPollSkip      Class = "inner-poll-skip"
	InnerPollBack      Class = "inner-poll-back"
	SendBack           Class = "send-back"
	InnerSendBack      Class = "inner-send-back"
	RealtimeWrite      Class = "realtime-write"
	CircularRead       Class = "circular-read"
	ConsumedTwice      Class = "consumed-twice"
	NotConsumed        Class = "not-consumed"
	OffsetBack         Class = "offset-back"
	OffsetUncommitted  Class = "offset-uncommitted"
	WatermarkBack      Class = "watermark-back"
	WatermarkOrder     Class = "watermark-order"
	WatermarkBehind    Class = "watermark-behind"
	OpenPassed         Class = "open-passed"
	Hanging            Class = "hanging"
	Stuck              Class = "stuck"
)

// What the protocol allows and users should know of.
const (
	WriteCycle       Class = "write-cycle"
	MixedCycle       Class = "mixed-cycle"
	IntermediateRead Class = "intermediate-read"
	InnerSendSkip    Class = "inner-send-skip"
	GroupPollSkip    Class = "group-poll-skip"
	GroupPollBack    Class = "group-poll-back"
	NotDrained       Class = "not-drained"
)

// classes explains each class, errors first.
var classes = []struct {
	class   Class
	allowed bool
	means   string
}{
	{InconsistentOffset, false, "two different records at one offset"},
	{Duplicate, false, "one record at two offsets"},
	{Unwritten, false, "a record was read that nobody sent"},
	{AbortedRead, false, "a record of a transaction that was not committed was read (G1a)"},
	{PrecommittedRead, false, "a transaction read what it had sent itself"},
	{LostWrite, false, "a committed record that readers passed over"},
	{Unseen, false, "a committed record that nobody had read at the end"},
	{PollSkip, false, "a reader with assigned partitions left records out between two operations"},
	{PollBack, false, "a reader with assigned partitions went back between two operations"},
	{InnerPollSkip, false, "a reader left records out within an operation"},
	{InnerPollBack, false, "a reader went back within an operation"},
	{SendBack, false, "a process's later send came before an earlier one"},
	{InnerSendBack, false, "within an operation a later send came before an earlier one"},
	{RealtimeWrite, false, "a send came before one that had been acknowledged before it began"},
	{CircularRead, false, "transactions read each other's records in a circle (G1c by reads alone)"},
	{ConsumedTwice, false, "two committed transactions of a group consumed the same records"},
	{NotConsumed, false, "a group's committed offset passed records that no committed transaction consumed"},
	{OffsetBack, false, "a committed offset went back"},
	{OffsetUncommitted, false, "a group's offset is one that no transaction can have committed"},
	{WatermarkBack, false, "a watermark went back"},
	{WatermarkOrder, false, "log start, last stable offset and high watermark are out of order"},
	{WatermarkBehind, false, "a watermark is behind what readers or writers had been told"},
	{OpenPassed, false, "readers were let past a record of an open transaction"},
	{Hanging, false, "after the end a partition is still held by a transaction"},
	{Stuck, false, "clients could not go on, or readers not reach the end, in the time they had"},
	{WriteCycle, true, "transactions wrote before each other in a circle (G0): appends are not isolated"},
	{MixedCycle, true, "a circle of writes and reads: appends are not isolated"},
	{IntermediateRead, true, "a poll showed a part of a transaction: it reads a range, not a snapshot"},
	{InnerSendSkip, true, "other writers' records lie between two sends of a transaction"},
	{GroupPollSkip, true, "a member left out records: another member had the partition meanwhile"},
	{GroupPollBack, true, "a member went back: the group's committed offset was behind"},
	{NotDrained, true, "records that nobody read; the history has no drain at its end, so they may only be late"},
}

// rank is the place of a class in reports.
func (c Class) rank() int {
	for i := range classes {
		if classes[i].class == c {
			return i
		}
	}
	return len(classes)
}

// Allowed says whether the protocol permits it.
func (c Class) Allowed() bool {
	i := c.rank()
	return i < len(classes) && classes[i].allowed
}

// Meaning says in a line what it is.
func (c Class) Meaning() string {
	if i := c.rank(); i < len(classes) {
		return classes[i].means
	}
	return ""
}

// Classes lists all classes, errors first.
func Classes() []Class {
	out := make([]Class, 0, len(classes))
	for i := range classes {
		out = append(out, classes[i].class)
	}
	return slices.Clip(out)
}
