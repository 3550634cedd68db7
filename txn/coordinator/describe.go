package coordinator

import "slices"

// describe shows an id. A kept transaction has no state of its own in Kafka's protocol; that it has no timeout shows.
func (t *transaction) describe() Described {
	d := Described{
		ID: t.id, ProducerID: t.producerID, Epoch: t.epoch, State: t.state,
		TimeoutMs: t.timeoutMs, StartMs: t.startMs, Partitions: t.partitions,
	}
	if d.State == Kept {
		d.State = Ongoing
	}
	return d
}

// Describe answers with the [Described] of an id, or with nil for one that the log does not hold.
func (m *Machine) Describe(to Token, id string) Output {
	if t := m.get(id); t != nil {
		return refuse(to, t.describe())
	}
	return refuse(to, nil)
}

// ListFilter chooses transactional ids; the zero value chooses all but for OlderThanMs, which none is negative.
type ListFilter struct {
	States      []State              // empty: any
	ProducerIDs []int64              // empty: any
	OlderThanMs int64                // how long ago the transaction began; negative: any
	ID          func(id string) bool // nil: any
}

func (f ListFilter) takes(d Described, nowMs int64) bool {
	return (len(f.States) == 0 || slices.Contains(f.States, d.State)) &&
		(len(f.ProducerIDs) == 0 || slices.Contains(f.ProducerIDs, d.ProducerID)) &&
		(f.OlderThanMs < 0 || nowMs-d.StartMs > f.OlderThanMs) &&
		(f.ID == nil || f.ID(d.ID))
}

// List answers with a []Described, in the order of the ids. An id without a transaction since its InitProducerId counts as
// older than any, as in Kafka.
func (m *Machine) List(nowMs int64, to Token, f ListFilter) Output {
	chosen := []Described{}
	for _, id := range m.sorted() {
		if t := m.get(id); t != nil {
			if d := t.describe(); f.takes(d, nowMs) {
				chosen = append(chosen, d)
			}
		}
	}
	return refuse(to, chosen)
}

// StateNamed is the state that has Kafka's name; ok is false if there is none. Kafka's list of names includes a state of its
// own in which no id is here; it is given as [Dead], in which none is listed either.
func StateNamed(name string) (s State, ok bool) {
	if name == "PrepareEpochFence" {
		return Dead, true
	}
	for s := Empty; s <= Dead; s++ {
		if stateNames[s] == name {
			return s, true
		}
	}
	return 0, false
}
