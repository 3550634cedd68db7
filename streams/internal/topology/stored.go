package topology

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Stored is the description of a topology as an application leaves it on the
// cluster: what the next start is compared with, and what tools show.
type Stored struct {
	// Format is that of this record; a reader refuses a higher one than it knows.
	Format  int     `json:"format"`
	Text    string  `json:"text"`
	Picture Picture `json:"picture"`
	// Incarnation is a random name for all that the application has kept since it
	// began or was reset: topics and folders of another one are not missed.
	Incarnation string `json:"incarnation"`
	// Reset says that what was kept is gone on purpose; there is no text then.
	Reset bool `json:"reset,omitempty"`
}

// Encode is the record.
func (s Stored) Encode() ([]byte, error) {
	s.Format = storedFormat
	return json.Marshal(s)
}

// storedFormat is what this release writes and the highest that it reads.
const storedFormat = 1

// ErrNewerDescription reports a description that a later release has written.
var ErrNewerDescription = errors.New("topology: the stored description has a newer format")

// DescriptionTopic is the name of the topic that holds the description of an
// application: compacted, of one partition, the last record counts.
func DescriptionTopic(appID string) string { return appID + "-topology" }

// DescriptionKey is the key of that record.
const DescriptionKey = "topology"

// ParseStored reads a description back.
func ParseStored(raw []byte) (Stored, error) {
	var s Stored
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("topology: the stored description cannot be read: %w", err)
	}
	if s.Format > storedFormat {
		return s, fmt.Errorf("%w: %d, this release reads up to %d", ErrNewerDescription, s.Format, storedFormat)
	}
	return s, nil
}
