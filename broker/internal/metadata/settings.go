package metadata

import "strconv"

// Source is where a setting comes from, numbered as in the protocol (DescribeConfigs version 1).
type Source int8

// The sources, the strongest first.
const (
	FromTopic   Source = 1 // set for the topic
	FromBroker  Source = 2 // set for this broker, while it runs
	FromBrokers Source = 3 // set for all brokers, while they run
	FromStatic  Source = 4 // what this broker was started with
	FromDefault Source = 5
)

// AllBrokers is the name of the settings that hold for every broker of the cluster.
const AllBrokers = ""

// Value is one of the places that give a setting a value: under which name, and where that is.
type Value struct {
	Name, Value string
	Source      Source
}

// Static is what a broker was started with, by broker-level name.
type Static map[string]string

// Settings are the settings of one topic, or of the broker, with everything they fall back on.
type Settings struct {
	topic  *Topic // nil for the broker's own
	image  *Image // nil where only the topic's own count
	static Static
	only   Source // 0 is all
}

// Settings gives a topic's settings. A topic of the broker's own takes nothing over from the broker: what somebody sets for all topics
// must not reach the coordinators.
func (im *Image) Settings(t *Topic, static Static) Settings {
	if t.Internal {
		return OwnSettings(t)
	}
	return Settings{topic: t, image: im, static: static}
}

// BrokerSettings gives the broker-level values of topic settings, by their topic-level names.
func (im *Image) BrokerSettings(static Static) Settings { return Settings{image: im, static: static} }

// BrokersSettings is what was set for all brokers, and nothing else.
func (im *Image) BrokersSettings() Settings {
	all := *im
	all.brokers = map[string]map[string]string{AllBrokers: im.brokers[AllBrokers]}
	return Settings{image: &all, only: FromBrokers}
}

// OwnSettings gives what a topic sets itself; all else is default.
func OwnSettings(t *Topic) Settings { return Settings{topic: t} }

// Get is the value in force.
func (s Settings) Get(name string) string { return s.InForce(TopicConfig(name)).Value }

// InForce is the value in force, and where it comes from.
func (s Settings) InForce(k *ConfigKey) (v Value) {
	s.each(k, func(one Value) bool {
		v = one
		return false
	})
	return v
}

// Values lists all places that give a value, the one in force first. A key without a broker-level name has none for its default.
func (s Settings) Values(k *ConfigKey) (out []Value) {
	s.each(k, func(one Value) bool {
		if one.Name != "" && (s.only == 0 || s.only == one.Source) {
			out = append(out, one)
		}
		return true
	})
	return out
}

// each calls fn for every place until it returns false. The last one is the default.
func (s Settings) each(k *ConfigKey, fn func(Value) bool) {
	if s.topic != nil {
		if v, ok := s.topic.Config[k.Name]; ok && !fn(Value{k.Name, v, FromTopic}) {
			return
		}
	}
	if k.Synonym != "" && s.image != nil {
		for _, from := range []struct {
			config map[string]string
			source Source
		}{
			{s.image.Broker(strconv.Itoa(int(s.image.NodeID))), FromBroker},
			{s.image.Broker(AllBrokers), FromBrokers},
			{s.static, FromStatic},
		} {
			if v, ok := from.config[k.Synonym]; ok && !fn(Value{k.Synonym, v, from.source}) {
				return
			}
		}
	}
	fn(Value{k.Synonym, s.fallback(k), FromDefault})
}

// fallback is a key's default.
func (s Settings) fallback(k *ConfigKey) string {
	if k.Name == FlushMs && s.topic != nil && s.Get(Durability) == DurabilityInterval {
		return defaultFlushMs
	}
	return k.Default
}
