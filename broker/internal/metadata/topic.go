package metadata

import (
	"crypto/rand"
	"io"
	"sort"
	"strings"
)

// maxNameLen is the longest topic name: with a partition's number it must still
// be a file name.
const maxNameLen = 249

// ValidateName says whether a topic may have this name. Messages are Kafka's.
func ValidateName(name string) error {
	switch {
	case name == "":
		return said("Topic name is invalid: the empty string is not allowed")
	case name == "." || name == "..":
		return said("Topic name is invalid: '%s' is not allowed", name)
	case len(name) > maxNameLen:
		return said("Topic name is invalid: the length of '%s' is longer than the max allowed length %d", name, maxNameLen)
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if !ok {
			return said("Topic name is invalid: '%s' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'", name)
		}
	}
	return nil
}

// Collides returns the topic whose name differs from name only in '.' and '_',
// "" if there is none: metric names do not tell the two apart.
func Collides(im *Image, name string) string {
	if !strings.ContainsAny(name, "._") {
		return ""
	}
	// A colliding name has the same letters around its dots and underscores, so
	// only names that sort around the prefix before the first one can match.
	prefix := name[:strings.IndexAny(name, "._")]
	want := strings.ReplaceAll(name, ".", "_")
	names := im.Names()
	for i := sort.SearchStrings(names, prefix); i < len(names) && strings.HasPrefix(names[i], prefix); i++ {
		if names[i] != name && strings.ReplaceAll(names[i], ".", "_") == want {
			return names[i]
		}
	}
	return ""
}

// NewID makes a random topic id (UUID version 4). Like Kafka it avoids ids whose
// text begins with a dash, which command lines take for an option.
func NewID() ID { return NewIDFrom(rand.Reader) }

// NewIDFrom is NewID with a source of randomness of the caller's, which does not fail.
func NewIDFrom(random io.Reader) ID {
	for {
		var id ID
		if _, err := io.ReadFull(random, id[:]); err != nil {
			panic(err) // as of crypto/rand
		}
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if id[0]>>2 != 62 { // '-' in the URL alphabet of base64
			return id
		}
	}
}

// NewTopic lists the changes that make a topic with n partitions, led by node.
func NewTopic(node int32, name string, id ID, n int32, config map[string]string) []Change {
	changes := []Change{TopicChange{Name: name, ID: id}}
	for i := range n {
		changes = append(changes, PartitionChange{TopicID: id, Partition: i, Leader: node})
	}
	keys := make([]string, 0, len(config))
	for k := range config {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		v := config[k]
		changes = append(changes, ConfigChange{Topic: name, Name: k, Value: &v})
	}
	return changes
}
