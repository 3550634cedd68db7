package runtime

import (
	"time"

	"github.com/millrace/millrace/streams/internal/task"
)

// Figures is what a run looks like at a moment. It is a copy: nothing in it
// changes any more.
type Figures struct {
	App      string          `json:"app"`
	Identity string          `json:"identity"`
	Began    time.Time       `json:"began"`
	At       time.Time       `json:"at"`
	State    JobState        `json:"state"`
	Workers  []WorkerFigures `json:"workers"`
	// Restores are the stores that are being brought up to date, and the copies of
	// others that follow their changelogs.
	Restores []Restored `json:"restores,omitempty"`
}

// WorkerFigures is what a worker has done since it started. Counters of tasks
// begin anew when a task does.
type WorkerFigures struct {
	Worker      int             `json:"worker"`
	State       State           `json:"state"`
	At          time.Time       `json:"at"` // when it said so
	Processed   int64           `json:"processed"`
	Emitted     int64           `json:"emitted"` // changelog records included
	Commits     int64           `json:"commits"`
	StartedOver int64           `json:"startedOver"` // transactions given up
	Committing  Histogram       `json:"committing"`  // time that commits took
	Dropped     []task.Dropped  `json:"dropped,omitempty"`
	Tasks       []TaskFigures   `json:"tasks"`
	Globals     []GlobalFigures `json:"globals,omitempty"`
}

// TaskFigures is one task.
type TaskFigures struct {
	Sub       string         `json:"subTopology"`
	Partition int32          `json:"partition"`
	Processed int64          `json:"processed"`
	Emitted   int64          `json:"emitted"` // records sent, without those of changelogs
	Busy      float64        `json:"busy"`    // seconds that it took
	StreamMs  int64          `json:"streamTime"`
	Inputs    []InputFigures `json:"inputs"`
	Nodes     []task.Seen    `json:"nodes"`
	Dropped   []task.Dropped `json:"dropped,omitempty"`
	Stores    []StoreFigures `json:"stores,omitempty"`
	Lateness  Histogram      `json:"lateness"` // how far records were behind stream time, those that were
	Latency   Histogram      `json:"latency"`  // from a record's time to the commit of what followed, some of them
}

// InputFigures is one partition that a task reads.
type InputFigures struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Position  int64  `json:"position"`
	Committed int64  `json:"committed"`
	End       int64  `json:"end"` // as the last fetch knew it
}

// Lag is how many offsets are left to read.
func (i InputFigures) Lag() int64 { return max(0, i.End-i.Position) }

// StoreFigures is one store of a task.
type StoreFigures struct {
	Store       string `json:"store"`
	Rows        int64  `json:"rows"`        // -1: not known
	Bytes       int64  `json:"bytes"`       // of the image; -1: not known
	Uncommitted int64  `json:"uncommitted"` // bytes that wait for the commit
	Changelog   int64  `json:"changelog"`   // position in it
}

// GlobalFigures is a worker's copy of a global table.
type GlobalFigures struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}
