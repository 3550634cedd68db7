package topology

import (
	"regexp"

	"github.com/millrace/millrace/streams/internal/task"
	"github.com/millrace/millrace/streams/state"
)

// Topology is a whole application.
type Topology struct {
	AppID    string
	Subs     []Sub           // in order of their first source's declaration
	Internal []InternalTopic // in order of name
	Globals  []Global        // in order of definition
	// Text is the topology as people read it, what App.Describe returns.
	Text string
	// Picture is the same as data.
	Picture Picture
}

// Sub is one sub-topology: a connected part of the graph whose tasks run
// independently of all others.
type Sub struct {
	Name    string // the name of its first source topic; unique, stable
	Sources []Source
	Stores  []Store
	Sinks   []string // topics it writes, repartition topics included, sorted, without changelogs
	// Copartition lists groups of source topics that must have the same
	// number of partitions, because keys of one are looked up by keys of
	// another. A source that is in no group stands alone.
	Copartition [][]string
	// New makes the task of one partition.
	New func(task.Env) (task.Task, error)
}

// Source is one topic that a sub-topology reads.
type Source struct {
	Topic    string
	Internal bool // a repartition topic of this application
	// Pattern: the source reads all topics whose whole name matches; Topic is only
	// its own name then. See Expand.
	Pattern *regexp.Regexp
	// Timed: the task takes the time of a record from its contents; see
	// task.Task's TimeMs.
	Timed bool
	// Begin says where reading begins where the group has no offset yet.
	Begin Begin
}

// Global is a table of which each worker has a copy of the whole topic. Tasks get
// it like a store, to read.
type Global struct {
	Name  string
	Topic string
	// Row turns a record into its row, as Store.FromSource does.
	Row func(*task.Record) (key, value []byte, ok bool)
	// Detail is for people.
	Detail string
}

// Store is one state store; each task of the sub-topology has its own part.
type Store struct {
	Name     string
	InMemory bool
	Engine   state.Engine // nil: that of the run
	// Changelog is the topic that holds the store's rows: key and value of a
	// record are key and value of the row, a null value deletes it. With
	// FromSource set it is the source topic that the store materialises: then
	// the store's writes are not logged, and a restore goes through FromSource.
	// Empty: nothing remembers the store, it begins empty with its task.
	Changelog string
	// Config is added to the changelog's configuration.
	Config map[string]string
	// FromSource turns a record of the source topic into the row that
	// processing it would have left: a nil value deletes the row. ok is false
	// for records that leave no trace (a null key, bytes that do not decode).
	// Key is that of the record, value is the caller's. Safe for concurrent use.
	FromSource func(*task.Record) (key, value []byte, ok bool)
	// Windowed stores have rows that begin with the window start, 8 bytes big
	// endian, and end by stream time after RetentionMs.
	Windowed    bool
	RetentionMs int64
}

// Kind of an internal topic.
type Kind int

const (
	// Repartition topics carry records whose key has changed to the task that
	// owns the new key.
	Repartition Kind = iota
	// Changelog topics carry the rows of one store.
	Changelog
)

// String is the suffix of the topic's name.
func (k Kind) String() string {
	if k == Changelog {
		return "changelog"
	}
	return "repartition"
}

// InternalTopic is a topic the application creates for itself. Its number of
// partitions comes from Resolve.
type InternalTopic struct {
	Name   string
	Kind   Kind
	Sub    string // that reads it (repartition) or owns its store (changelog)
	Config map[string]string
	// Partitions is how many a repartition topic must have, 0 for what Resolve finds.
	Partitions int32
}

// NewInternal builds an internal topic with the configuration its kind needs.
func NewInternal(appID, name string, kind Kind, sub string) InternalTopic {
	t := InternalTopic{Name: InternalName(appID, name, kind), Kind: kind, Sub: sub}
	switch kind {
	case Repartition:
		// Nothing expires by age: records may carry timestamps of any year.
		t.Config = map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "message.timestamp.type": "CreateTime"}
	case Changelog:
		t.Config = map[string]string{"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
	}
	return t
}

// InternalName is <app>-<name>-repartition or <app>-<name>-changelog.
func InternalName(appID, name string, kind Kind) string {
	return appID + "-" + name + "-" + kind.String()
}
