package inspect

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/broker/internal/flush"
)

// verifyFolder checks what belongs to no partition: the journal, the metadata, and whether folders are missing.
func (d *Data) verifyFolder(report func(Finding)) {
	say := func(s Severity, file string, position int64, format string, args ...any) {
		report(Finding{Severity: s, Segment: -1, File: file, Position: position, Offset: -1, What: fmt.Sprintf(format, args...)})
	}
	log := metadataTopic + "-0"
	switch {
	case d.Properties == nil:
		say(Damage, identityFile, -1, "the file is missing: nobody can tell whose folder this is")
	case d.Properties["cluster.id"] == "" || d.Properties["node.id"] == "":
		say(Damage, identityFile, -1, "the file has no cluster.id or no node.id")
	}
	if d.clusterErr != nil {
		say(Damage, log, -1, "the metadata log can not be read: %v", d.clusterErr)
	}
	if d.Ours() {
		d.verifyJournal(say)
	}
	for _, name := range d.strays {
		say(Note, name, -1, "no partition's folder; brokers leave it alone")
	}
	if d.Cluster == nil {
		return
	}
	for _, p := range d.Partitions {
		if t := d.Cluster.Topics[p.Topic]; t == nil && p.Topic != metadataTopic {
			say(Note, filepath.Base(p.Dir), -1, "the metadata log knows no topic %s; brokers leave the folder alone", p.Topic)
		}
	}
	if d.Ours() {
		d.verifyFolders(say)
	}
}

// verifyJournal checks the recovery journal for itself; what it says of a partition is compared there.
func (d *Data) verifyJournal(say func(Severity, string, int64, string, ...any)) {
	switch {
	case d.journal == nil:
		say(Damage, flush.JournalName, -1, "the file is missing: nobody can tell any more what was durable")
		return
	case d.journalErr != nil:
		say(Damage, flush.JournalName, 0, "%v", d.journalErr)
		return
	}
	if d.pending > 0 {
		say(Note, flush.CarryName+"*", -1, "%d bytes of logs; the next start, or a repair, puts them where they are missing", d.pending)
	}
	for _, g := range d.journal.Gaps {
		if g.Flipped >= 0 {
			say(Rebuildable, flush.JournalName, g.Flipped, "a flipped bit in the record at byte %d", g.Position)
		} else {
			say(Note, flush.JournalName, g.Position, "%d bytes do not check, as after a power cut", g.Bytes)
		}
	}
}

// verifyFolders looks for folders that should be there: every partition that anything was durable of.
func (d *Data) verifyFolders(say func(Severity, string, int64, string, ...any)) {
	if d.journal == nil || d.journalErr != nil {
		return
	}
	if d.Partition(metadataTopic+"-0") == nil && len(d.Partitions) > 0 {
		say(Damage, metadataTopic+"-0", -1, "the folder of the metadata log is missing")
	}
	for _, name := range d.Cluster.Names() {
		t := d.Cluster.Topics[name]
		for i := range int32(len(t.Partitions)) {
			folder := fmt.Sprintf("%s-%d", name, i)
			point := d.journal.Points[flush.ID{Topic: t.ID, Partition: i}]
			if d.Partition(folder) == nil && point.Synced > point.LogStart {
				say(Damage, folder, -1, "the folder is missing, but offsets up to %d were durable", point.Synced-1)
			}
		}
	}
}

// splitList takes a comma-separated setting apart.
func splitList(value string) []string {
	parts := strings.Split(value, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}
