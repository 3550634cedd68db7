package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/core/vfs"
)

// ErrNoData says that a folder is neither a data folder nor that of a partition.
var ErrNoData = errors.New("neither a broker's data folder nor the folder of a partition")

// identityFile is Kafka's and our file that says whose a data folder is.
const identityFile = "meta.properties"

// Kafka's checkpoint files: offsets by partition.
const (
	recoveryPoints = "recovery-point-offset-checkpoint"
	highWatermarks = "replication-offset-checkpoint"
	logStarts      = "log-start-offset-checkpoint"
	cleanerPoints  = "cleaner-offset-checkpoint"
)

// Data is a data folder, or what is known of the one that a partition's folder lies in. It is read when it is opened and does
// not change.
type Data struct {
	// Dir is the data folder; of a partition's folder that lies in none it is the folder above.
	Dir string
	// Partitions are the folders, in the order of their names. When a partition's folder was opened it is that one alone.
	Partitions []*Partition
	// Cluster is what the metadata log says, nil when there is none.
	Cluster *Cluster
	// Properties is meta.properties, nil when there is none.
	Properties map[string]string

	fs         vfs.FS
	one        bool // opened for one partition's folder
	strays     []string
	pending    int64          // bytes of the append journals
	journal    *flush.Reading // nil without one
	journalErr error
	clusterErr error
	points     map[string]map[string]int64 // Kafka's checkpoints: file, topic-partition
}

// Open looks at a data folder, or at the folder of one partition.
func Open(fsys vfs.FS, dir string) (*Data, error) {
	dir = filepath.Clean(dir)
	names, err := fsys.List(dir)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	d := &Data{fs: fsys, Dir: dir, points: map[string]map[string]int64{}}
	if isPartition(dir, names) {
		p, err := openPartition(fsys, dir)
		if err != nil {
			return nil, err
		}
		d.Dir, d.one, d.Partitions = filepath.Dir(dir), true, []*Partition{p}
	} else if err := d.folders(names); err != nil {
		return nil, err
	}
	if err := d.surroundings(); err != nil {
		return nil, err
	}
	if len(d.Partitions) == 0 && d.Properties == nil {
		return nil, fmt.Errorf("inspect: %s: %w", dir, ErrNoData)
	}
	return d, nil
}

// isPartition tells whether a folder is that of a partition.
func isPartition(dir string, names []string) bool {
	name := filepath.Base(dir)
	_, _, plain := parseFolder(name)
	_, _, moved := parseAside(name)
	return (plain || moved) && !slices.Contains(names, identityFile)
}

// folders opens the partitions among the names in the data folder.
func (d *Data) folders(names []string) error {
	for _, name := range names {
		dir := filepath.Join(d.Dir, name)
		info, err := d.fs.Stat(dir)
		if err != nil {
			return fmt.Errorf("inspect: %w", err)
		}
		if !info.Dir {
			continue
		}
		if _, _, ok := parseFolder(name); !ok {
			d.strays = append(d.strays, name)
			continue
		}
		p, err := openPartition(d.fs, dir)
		if err != nil {
			return err
		}
		d.Partitions = append(d.Partitions, p)
	}
	return nil
}

// surroundings reads what stands beside the partitions.
func (d *Data) surroundings() error {
	text, err := d.optional(identityFile)
	if err != nil {
		return err
	}
	if text != nil {
		d.Properties = properties(string(text))
	}
	if d.pending, err = flush.Pending(d.fs, d.Dir); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	data, err := d.optional(flush.JournalName)
	if err != nil {
		return err
	}
	if data != nil {
		r, err := flush.ReadJournal(data)
		d.journal, d.journalErr = &r, err
	}
	for _, name := range []string{recoveryPoints, highWatermarks, logStarts, cleanerPoints} {
		text, err := d.optional(name)
		if err != nil {
			return err
		}
		d.points[name] = checkpoints(string(text))
	}
	dir := filepath.Join(d.Dir, metadataTopic+"-0")
	if _, err := d.fs.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	p, err := openPartition(d.fs, dir)
	if err != nil {
		return err
	}
	d.Cluster, d.clusterErr = readCluster(p)
	return nil
}

// optional reads a file of the data folder; nil when there is none.
func (d *Data) optional(name string) ([]byte, error) {
	data, err := vfs.ReadFile(d.fs, filepath.Join(d.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	return data, nil
}

// LogStart is the first offset of a partition that is not deleted, as far as Kafka's checkpoints say; 0 when they say nothing.
func (d *Data) LogStart(partition string) int64 { return d.points[logStarts][partition] }

// Whole tells that it is a data folder that was opened, not the folder of one partition.
func (d *Data) Whole() bool { return !d.one }

// Ours tells whether a Millrace broker keeps the folder.
func (d *Data) Ours() bool { return d.journal != nil || d.Properties["millrace.format"] != "" }

// Partition gives the partition of that name, nil when there is none.
func (d *Data) Partition(name string) *Partition {
	for _, p := range d.Partitions {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// properties reads lines of key=value.
func properties(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if k, v, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			out[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	return out
}

// checkpoints reads one of Kafka's checkpoint files: version 0, a count, and lines of topic, partition, offset. They are written
// once a minute and may be empty; a line that does not parse says nothing.
func checkpoints(text string) map[string]int64 {
	out := map[string]int64{}
	lines := strings.Split(text, "\n")
	if len(lines) < 2 || lines[0] != "0" {
		return out
	}
	for _, line := range lines[2:] {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		if offset, err := strconv.ParseInt(f[2], 10, 64); err == nil {
			out[f[0]+"-"+f[1]] = offset
		}
	}
	return out
}
