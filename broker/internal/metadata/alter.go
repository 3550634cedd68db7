package metadata

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Op is what an alteration does to a setting, numbered as in the protocol (IncrementalAlterConfigs, KIP-339).
type Op int8

// The operations. OpAppend and OpSubtract are for lists only, and begin with the value in force.
const (
	OpSet Op = iota
	OpDelete
	OpAppend
	OpSubtract
)

func (o Op) String() string {
	if o < OpSet || o > OpSubtract {
		return fmt.Sprintf("operation %d", o)
	}
	return [...]string{"SET", "DELETE", "APPEND", "SUBTRACT"}[o]
}

// Alteration is one change of a setting. OpDelete has no value.
type Alteration struct {
	Name  string
	Op    Op
	Value string
}

var (
	// ErrNotDynamic says that a setting of a broker can not be changed while it runs.
	ErrNotDynamic = errors.New("can not be changed while the broker runs")
	// ErrInternalTopic says that a setting of a topic of the broker's own is not for others to change.
	ErrInternalTopic = errors.New("belongs to the broker")
)

// AlterTopic lists the changes that alterations make to a topic's settings. Nothing is listed that changes nothing.
func (im *Image) AlterTopic(t *Topic, alterations []Alteration) ([]Change, error) {
	settings := im.Settings(t, nil)
	after, err := altered(t.Config, alterations, func(name string) (*ConfigKey, error) { return TopicConfig(name), nil }, settings)
	if err != nil {
		return nil, err
	}
	return im.SetTopic(t, after)
}

// SetTopic lists the changes that make a topic's settings those given, and no others.
func (im *Image) SetTopic(t *Topic, after map[string]string) ([]Change, error) {
	if err := ValidateTopicConfigs(after); err != nil {
		return nil, err
	}
	changes := differences(t.Config, after, func(name string, value *string) Change {
		return ConfigChange{Topic: t.Name, Name: name, Value: value}
	})
	if t.Internal {
		for _, c := range changes {
			if name := c.(ConfigChange).Name; !slices.Contains(internalTopicConfigs, name) {
				return nil, fmt.Errorf("%s of topic %s can not be changed: the topic %w", name, t.Name, ErrInternalTopic)
			}
		}
	}
	return changes, nil
}

// internalTopicConfigs are the settings of the broker's own topics that may be changed: what can not harm a coordinator.
var internalTopicConfigs = []string{
	"delete.retention.ms", "file.delete.delay.ms", "index.interval.bytes", "max.compaction.lag.ms", "min.cleanable.dirty.ratio",
	"min.compaction.lag.ms", "segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms",
}

// AlterBroker lists the changes that alterations make to the settings of a broker, or of AllBrokers, by broker-level names.
func (im *Image) AlterBroker(broker string, alterations []Alteration, static Static) ([]Change, error) {
	after, err := altered(im.Broker(broker), alterations, dynamicKey, im.BrokerSettings(static))
	if err != nil {
		return nil, err
	}
	return im.SetBroker(broker, after)
}

// SetBroker lists the changes that make the settings of a broker those given, and no others.
func (im *Image) SetBroker(broker string, after map[string]string) ([]Change, error) {
	var fixed []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, err := dynamicKey(name); err != nil {
			fixed = append(fixed, name)
		}
	}
	if len(fixed) > 0 {
		return nil, notDynamic(fixed)
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if err := BrokerConfig(name).Validate(name, after[name]); err != nil {
			return nil, err
		}
	}
	return differences(im.Broker(broker), after, func(name string, value *string) Change {
		return BrokerConfigChange{Broker: broker, Name: name, Value: value}
	}), nil
}

func dynamicKey(name string) (*ConfigKey, error) {
	if k := BrokerConfig(name); k != nil {
		return k, nil
	}
	return nil, notDynamic([]string{name})
}

type notDynamic []string

func (n notDynamic) Error() string {
	return fmt.Sprintf("Cannot update these configs dynamically: [%s]", strings.Join(n, ", "))
}

func (n notDynamic) Is(target error) bool { return target == ErrNotDynamic }

// altered is what alterations make of the values set at one level.
func altered(own map[string]string, alterations []Alteration, key func(string) (*ConfigKey, error), settings Settings) (map[string]string, error) {
	after := maps.Clone(own)
	if after == nil {
		after = map[string]string{}
	}
	for _, a := range alterations {
		switch a.Op {
		case OpSet:
			after[a.Name] = a.Value
		case OpDelete:
			delete(after, a.Name)
		case OpAppend, OpSubtract:
			k, err := key(a.Name)
			if err != nil {
				return nil, err
			}
			if k == nil || k.Type != List {
				return nil, said("Can't %s to key %s because its type is not LIST.", a.Op, a.Name)
			}
			value, set := after[a.Name]
			if !set {
				value = settings.InForce(k).Value
			}
			after[a.Name] = edit(value, a)
		default:
			return nil, said("Unknown %s for configuration %s", a.Op, a.Name)
		}
	}
	return after, nil
}

// edit appends words to a list, or takes them out.
func edit(list string, a Alteration) string {
	words := ListValues(list)
	for _, w := range ListValues(a.Value) {
		at := slices.Index(words, w)
		switch {
		case a.Op == OpAppend && at < 0:
			words = append(words, w)
		case a.Op == OpSubtract && at >= 0:
			words = slices.Delete(words, at, at+1)
		}
	}
	return strings.Join(words, ",")
}

// differences lists what leads from one set of values to another, sorted by name.
func differences(before, after map[string]string, change func(name string, value *string) Change) (out []Change) {
	names := slices.Sorted(maps.Keys(before))
	for name := range after {
		if _, had := before[name]; !had {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		was, had := before[name]
		is, has := after[name]
		switch {
		case !has:
			out = append(out, change(name, nil))
		case !had || was != is:
			out = append(out, change(name, &is))
		}
	}
	return out
}

// Stricter lists the changes that raise the leader epochs of topics whose acknowledgements wait for the sync from given changes on, and
// did not before. They belong to the same step: if the power goes before what was acknowledged is synced, the epoch tells clients so
// (KIP-320), although the topic comes back as one that loses nothing.
func (im *Image) Stricter(changes []Change, static Static) (epochs []Change, err error) {
	next, err := im.Apply(im.Offset, changes)
	if err != nil {
		return nil, err
	}
	for _, name := range im.Names() {
		before, after := im.Topic(name), next.Topic(name)
		if after == nil || !relaxed(im.Settings(before, static)) || relaxed(next.Settings(after, static)) {
			continue
		}
		for i, p := range after.Partitions {
			epochs = append(epochs, PartitionChange{
				TopicID: after.ID, Partition: int32(i), Leader: p.Leader, LeaderEpoch: p.LeaderEpoch + 1, Epoch: p.Epoch + 1,
			})
		}
	}
	return epochs, nil
}

func relaxed(s Settings) bool { return s.Get(Durability) != DurabilityFsync }
