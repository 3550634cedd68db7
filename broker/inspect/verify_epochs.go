package inspect

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/core/record"
)

// epochStart is a line of the leader epoch file: the offset at which an epoch begins.
type epochStart struct {
	epoch int32
	start int64
}

// parseEpochs reads the file: version 0, a count, and as many lines, in which both columns rise.
func parseEpochs(text string) ([]epochStart, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 2 || lines[0] != "0" {
		return nil, errors.New("it does not begin with version 0")
	}
	if n, err := strconv.Atoi(lines[1]); err != nil || n != len(lines)-2 {
		return nil, fmt.Errorf("it announces %q entries and has %d", lines[1], len(lines)-2)
	}
	var out []epochStart
	for _, line := range lines[2:] {
		a, b, _ := strings.Cut(line, " ")
		epoch, err1 := strconv.ParseInt(a, 10, 32)
		start, err2 := strconv.ParseInt(b, 10, 64)
		if errors.Join(err1, err2) != nil || epoch < 0 || start < 0 {
			return nil, fmt.Errorf("entry %q", line)
		}
		if n := len(out); n > 0 && (out[n-1].epoch >= int32(epoch) || out[n-1].start > start) {
			return nil, fmt.Errorf("entry %q does not rise", line)
		}
		out = append(out, epochStart{int32(epoch), start})
	}
	return out, nil
}

// epochCheck compares the leader epoch file with the batches.
type epochCheck struct {
	list  []epochStart
	cause string // why there is no list
	found bool
}

// load reads the file.
func (e *epochCheck) load(c *ground) error {
	e.cause = "the file is missing"
	if !c.p.has(epochsName) {
		return nil
	}
	text, err := c.p.read(epochsName)
	if err != nil {
		return err
	}
	e.cause = ""
	list, perr := parseEpochs(string(text))
	if perr != nil {
		e.cause = "the file can not be read: " + perr.Error()
	}
	e.list = list
	return nil
}

// batch checks that the file knows a batch's epoch. A folder with a journal writes the file with a checkpoint, and what lies behind
// that is made anew.
func (e *epochCheck) batch(c *ground, name string, b record.Batch) {
	if e.found || b.LeaderEpoch() < 0 || c.journal && b.BaseOffset() >= c.point.Checkpoint.Offset || b.LastOffset() < c.logStart {
		return
	}
	if e.cause != "" {
		e.found = true
		c.find(Rebuildable, epochsName, -1, -1, "%s", e.cause)
		return
	}
	at := int32(-1)
	for _, s := range e.list {
		if s.start <= max(b.BaseOffset(), c.logStart) {
			at = s.epoch
		}
	}
	if at < 0 && !c.journal && len(c.d.points[logStarts]) == 0 && len(e.list) > 0 {
		at = e.list[0].epoch // the file begins at the log start, which nobody tells
	}
	if at != b.LeaderEpoch() {
		e.found = true
		c.find(Rebuildable, epochsName, -1, b.BaseOffset(), "the file says leader epoch %d for this offset, the batch in %s has %d", at, name, b.LeaderEpoch())
	}
}

// end looks for epochs that begin behind the end of the log.
func (e *epochCheck) end(c *ground) {
	if e.found || c.broken || c.journal {
		return
	}
	for _, s := range e.list {
		if s.start > max(c.next, c.logStart) {
			e.found = true
			c.find(Rebuildable, epochsName, -1, s.start, "leader epoch %d begins behind the end of the log, offset %d", s.epoch, c.next)
		}
	}
}

// identity checks which topic the folder says it belongs to.
func (c *ground) identity() error {
	known := c.topic != nil || c.p.Topic == metadataTopic
	severity := Damage // nobody else can tell
	switch {
	case c.journal && c.known == 0:
		severity = Note // as after a power cut: nothing in the folder was durable yet
	case known:
		severity = Rebuildable
	}
	if !c.p.has(metadataName) {
		if len(c.p.logs) > 0 {
			c.find(severity, metadataName, -1, -1, "the file is missing, which ties the folder to its topic's id")
		}
		return nil
	}
	text, err := c.p.read(metadataName)
	if err != nil {
		return err
	}
	id, perr := parseMetadata(text)
	switch {
	case perr != nil:
		c.find(severity, metadataName, 0, -1, "the file can not be read: %v", perr)
	case c.p.Topic == metadataTopic && id != metadataID:
		c.find(Rebuildable, metadataName, 0, -1, "the file says topic id %s, that of the metadata log is %s", uuidText(id), uuidText(metadataID))
	case c.topic != nil && oneBit(text, metadataText(c.topic.ID)):
		c.find(Rebuildable, metadataName, 0, -1, "a flipped bit: the file says topic id %s, topic %s has id %s", uuidText(id), c.topic.Name, uuidText(c.topic.ID))
	case c.topic != nil && id != c.topic.ID:
		c.find(Damage, metadataName, 0, -1, "the folder belongs to topic id %s, topic %s has id %s", uuidText(id), c.topic.Name, uuidText(c.topic.ID))
	}
	return nil
}
