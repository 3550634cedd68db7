package metadata

import (
	"maps"
	"sort"
)

// ID is a topic id, a UUID. The zero value means "no id".
type ID = [16]byte

// Partition is one partition of a topic in an image.
type Partition struct {
	Leader      int32
	LeaderEpoch int32
	// Epoch counts changes of this partition's record.
	Epoch int32
}

// Topic is one topic of an image. Like the image it is never changed.
type Topic struct {
	Name       string
	ID         ID
	Internal   bool
	Partitions []Partition
	// Config holds only what was set for this topic; defaults are not in it.
	Config map[string]string
}

// Image is the state of the cluster's metadata after one record. It is
// immutable: a change makes a new image, and readers hold on to theirs as long
// as they like.
type Image struct {
	// Offset is the offset behind the last record of the metadata log that is in
	// the image.
	Offset int64
	// Features holds the finalized feature levels by name.
	Features map[string]int16
	// NextProducerID is the first producer id that no block given out so far
	// contains.
	NextProducerID int64

	ClusterID string
	NodeID    int32

	byName map[string]*Topic
	byID   map[ID]*Topic
	names  []string // sorted
	// removed holds the ids of topics that a record deleted. Their folders may be
	// removed from disk; a folder of an id that is neither here nor in byID is
	// foreign and left alone.
	removed map[ID]struct{}
	// brokers holds what was set for brokers, by id or AllBrokers. The inner maps are never changed.
	brokers map[string]map[string]string
}

// Broker returns what was set for a broker, by its id, or for AllBrokers. Callers must not change the map.
func (im *Image) Broker(id string) map[string]string { return im.brokers[id] }

// Topic returns the topic of that name, nil if there is none.
func (im *Image) Topic(name string) *Topic { return im.byName[name] }

// TopicByID returns the topic of that id, nil if there is none.
func (im *Image) TopicByID(id ID) *Topic { return im.byID[id] }

// Names returns all topic names, sorted. Callers must not change the slice.
func (im *Image) Names() []string { return im.names }

// Removed says whether a topic of that id existed and was deleted.
func (im *Image) Removed(id ID) bool { _, ok := im.removed[id]; return ok }

// clone makes a copy that may be changed until it is published. Topics are
// shared; whoever changes one copies it first.
func (im *Image) clone() *Image {
	next := *im
	next.Features = make(map[string]int16, len(im.Features))
	for k, v := range im.Features {
		next.Features[k] = v
	}
	next.byName = make(map[string]*Topic, len(im.byName)+1)
	for k, v := range im.byName {
		next.byName[k] = v
	}
	next.byID = make(map[ID]*Topic, len(im.byID)+1)
	for k, v := range im.byID {
		next.byID[k] = v
	}
	next.brokers = maps.Clone(im.brokers)
	next.removed = make(map[ID]struct{}, len(im.removed))
	for k := range im.removed {
		next.removed[k] = struct{}{}
	}
	return &next
}

func (im *Image) sortNames() {
	im.names = make([]string, 0, len(im.byName))
	for n := range im.byName {
		im.names = append(im.names, n)
	}
	sort.Strings(im.names)
}
