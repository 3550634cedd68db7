package metadata

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ValidateTopicConfigs checks what is set for a topic, each value and what they mean together. Messages are Kafka's, for tools show
// them.
func ValidateTopicConfigs(config map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(config)) {
		if err := ValidateTopicConfig(name, config[name]); err != nil {
			return err
		}
	}
	lag := func(name string) int64 {
		v, set := config[name]
		if !set {
			v = TopicConfig(name).Default
		}
		n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64) // it was checked above
		return n
	}
	if low, high := lag("min.compaction.lag.ms"), lag("max.compaction.lag.ms"); low > high {
		return said("conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)", low, high)
	}
	return nil
}

// ValidateTopicConfig checks one configuration.
func ValidateTopicConfig(name, value string) error {
	k := TopicConfig(name)
	if k == nil {
		return said("Unknown topic config name: %s", name)
	}
	return k.Validate(name, value)
}

// Validate checks a value, set under the key's name or its broker-level one.
func (k *ConfigKey) Validate(name, value string) error {
	if err := k.check(value); err != nil {
		return said("Invalid value %s for configuration %s: %v", value, name, err)
	}
	return nil
}

func (k *ConfigKey) check(value string) error {
	value = strings.TrimSpace(value)
	var n float64
	var err error
	switch k.Type {
	case Boolean:
		if v := strings.ToLower(value); v != "true" && v != "false" {
			return said("Expected value to be either true or false")
		}
	case Int:
		var v int64
		v, err = strconv.ParseInt(value, 10, 32)
		n = float64(v)
	case Long:
		var v int64
		v, err = strconv.ParseInt(value, 10, 64)
		n = float64(v)
	case Double:
		n, err = strconv.ParseFloat(value, 64)
	case String, List:
		return k.checkWords(value)
	}
	switch {
	case err != nil || math.IsNaN(n):
		return said("Not a number of type %s", kafkaName[k.Type])
	case k.Type != Boolean && n < k.Min:
		return said("Value must be at least %s", number(k.Min))
	case k.Type != Boolean && n > k.Max:
		return said("Value must be no more than %s", number(k.Max))
	}
	return k.honoured(strings.ToLower(value))
}

func (k *ConfigKey) checkWords(value string) error {
	words := []string{value}
	if k.Type == List {
		words = ListValues(value)
	}
	for _, w := range words {
		if len(k.OneOf) > 0 && !slices.Contains(k.OneOf, w) {
			return said("String must be one of: %s", strings.Join(k.OneOf, ", "))
		}
	}
	return k.honoured(value)
}

func (k *ConfigKey) honoured(value string) error {
	if len(k.Only) > 0 && !slices.Contains(k.Only, value) {
		return said("this broker supports only %s", strings.Join(k.Only, ", "))
	}
	return nil
}

// ListValues splits a value of type List.
func ListValues(value string) []string {
	var out []string
	for _, w := range strings.Split(value, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
