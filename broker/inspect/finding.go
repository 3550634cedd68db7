package inspect

import "fmt"

// Severity says how bad a finding is.
type Severity int8

// The severities, in rising order.
const (
	Note        Severity = iota // worth knowing, no fault
	Rebuildable                 // derived data that disagrees with the batches
	TornTail                    // bytes that no acknowledgement stands for; the next start cuts them off
	Damage                      // something that was durable is gone or wrong
)

var severityNames = [...]string{Note: "note", Rebuildable: "rebuildable", TornTail: "torn tail", Damage: "damage"}

func (s Severity) String() string { return severityNames[s] }

// MarshalText writes the name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Finding is something that is not as it should be.
type Finding struct {
	Severity Severity `json:"severity"`
	// Partition is topic-partition; empty for the data folder itself.
	Partition string `json:"partition,omitempty"`
	// Segment is the base offset of the segment, -1 where it is about none.
	Segment int64 `json:"segment"`
	// File is the name of the file in its folder.
	File string `json:"file,omitempty"`
	// Position is the byte in the file, -1 where it is about none.
	Position int64 `json:"position"`
	// Offset is that of the record, -1 where it is about none.
	Offset int64  `json:"offset"`
	What   string `json:"what"`
}

func (f Finding) String() string {
	s := f.Severity.String() + ": "
	if f.Partition != "" {
		s += f.Partition + ": "
	}
	if f.File != "" {
		s += f.File
		if f.Position >= 0 {
			s += fmt.Sprintf(" at byte %d", f.Position)
		}
		s += ": "
	}
	if f.Offset >= 0 {
		s += fmt.Sprintf("offset %d: ", f.Offset)
	}
	return s + f.What
}
