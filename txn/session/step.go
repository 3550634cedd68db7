package session

// Step is a point in a commit.
type Step string

// The steps of a commit, in order.
const (
	StepFlush   Step = "flush"   // before the last records are acknowledged
	StepOffsets Step = "offsets" // before the offsets join the transaction
	StepEnd     Step = "end"     // before the commit is asked for
	StepDone    Step = "done"    // after it is confirmed
)
