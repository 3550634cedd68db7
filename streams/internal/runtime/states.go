package runtime

// State is what a worker is doing.
type State string

// The states of a worker, in the usual order.
const (
	Joining   State = "joining"
	Restoring State = "restoring"
	Running   State = "running"
	Paused    State = "paused"
	Stopped   State = "stopped"
)

// JobState is what a run as a whole is doing.
type JobState string

// The states of a run. It is rebalancing while any of its workers joins the group
// or restores stores; the others go on meanwhile.
const (
	JobStarting    JobState = "starting"
	JobRebalancing JobState = "rebalancing"
	JobRunning     JobState = "running"
	JobPaused      JobState = "paused"
	JobStopping    JobState = "stopping"
	JobStopped     JobState = "stopped"
	JobFailed      JobState = "failed"
)

// WorkerStatus is what a worker last said of itself.
type WorkerStatus struct {
	Number int
	State  State
	Tasks  int

	generation int32 // of the group
	reached    int   // the last goal that was reached, in this generation
}

// Parting is whether a worker that stops leaves the group.
type Parting int32

const (
	// AsOptions leaves with Options.Leave, or without a folder to come back to.
	AsOptions Parting = iota
	// LeaveGroup lets the others take over at once.
	LeaveGroup
	// RemainInGroup keeps the place for SessionTimeout.
	RemainInGroup
)

// Uncaught is what becomes of a run when one of its workers fails with an error that
// the topology's error chain did not deal with, or a panic.
type Uncaught int

const (
	// StopProcess ends the run with the error.
	StopProcess Uncaught = iota
	// ReplaceWorker starts another worker in the place of the one that failed. It
	// goes on from the last commit, after a pause that grows from one failure to
	// the next without a commit in between.
	ReplaceWorker
)
