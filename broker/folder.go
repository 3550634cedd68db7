package broker

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/replicas"
	"github.com/millrace/millrace/core/vfs"
)

// The errors of a data folder that a caller may want to tell apart.
var (
	// ErrLocked says that another process has the data folder.
	ErrLocked = errors.New("data folder is in use by another process")
	// ErrNewerFormat says that a newer Millrace wrote the data folder.
	ErrNewerFormat = errors.New("data folder was written by a newer version of Millrace")
)

// formatVersion is the version of the data folder's layout that this program
// writes, and the newest it reads.
const formatVersion = 1

// Names in the data folder.
const (
	lockFile     = ".lock"
	identityFile = "meta.properties"
)

// folder is the open data folder.
type folder struct {
	fs        vfs.FS
	dir       string
	clusterID string
	nodeID    int32
	lock      io.Closer
	random    io.Reader // for the ids of a new folder
}

// openFolder makes the folder if needed, takes its lock, and reads or writes who
// it belongs to.
func openFolder(fsys vfs.FS, dir string, nodeID int32, random io.Reader) (*folder, error) {
	f := &folder{fs: fsys, dir: dir, nodeID: nodeID, random: random}
	if err := makeDurable(fsys, dir); err != nil {
		return nil, fmt.Errorf("broker: data folder %s can not be made: %w", dir, err)
	}
	lock, err := fsys.Lock(filepath.Join(dir, lockFile))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return nil, fmt.Errorf("broker: %s: %w", dir, ErrLocked)
	case err != nil:
		return nil, fmt.Errorf("broker: data folder %s can not be locked, is it writable? %w", dir, err)
	}
	f.lock = lock
	if err := f.identify(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

// makeDurable makes a folder and its missing parents, and their names durable: a
// synced file in a folder whose name is lost is lost too.
func makeDurable(fsys vfs.FS, dir string) error {
	var parents []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		_, err := fsys.Stat(d)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			return err
		}
		parents = append(parents, filepath.Dir(d))
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for _, d := range parents {
		if err := fsys.SyncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// identify reads meta.properties, or writes it in a new folder.
func (f *folder) identify() error {
	path := filepath.Join(f.dir, identityFile)
	text, err := vfs.ReadFile(f.fs, path)
	if errors.Is(err, fs.ErrNotExist) {
		return f.create(path)
	}
	if err != nil {
		return fmt.Errorf("broker: %s: %w", path, err)
	}
	props := properties(string(text))
	format, err := strconv.Atoi(props["millrace.format"])
	switch {
	case props["millrace.format"] == "":
		return fmt.Errorf("broker: %s has no millrace.format: the folder %s was written by another program; if that is Apache Kafka, "+
			"\"millrace log import %s --data-dir DIR\" makes one of ours from it", path, f.dir, f.dir)
	case err != nil || format < 1:
		return fmt.Errorf("broker: %s: millrace.format is %q, not a version number", path, props["millrace.format"])
	case format > formatVersion:
		return fmt.Errorf("broker: %s: %w: its format is %d, this program knows up to %d", f.dir, ErrNewerFormat, format, formatVersion)
	}
	node, err := strconv.ParseInt(props["node.id"], 10, 32)
	if err != nil {
		return fmt.Errorf("broker: %s: node.id is %q, not a number", path, props["node.id"])
	}
	if f.nodeID != 0 && int32(node) != f.nodeID {
		return fmt.Errorf("broker: data folder %s belongs to node %d, not to node %d as NodeID says", f.dir, node, f.nodeID)
	}
	f.nodeID, f.clusterID = int32(node), props["cluster.id"]
	if f.clusterID == "" {
		return fmt.Errorf("broker: %s has no cluster.id", path)
	}
	return f.complete()
}

// complete refuses a folder that has a metadata log and no recovery journal. The journal is made first, so somebody has lost it:
// without it nothing tells damage from a write that was never acknowledged.
func (f *folder) complete() error {
	log := filepath.Join(f.dir, replicas.Folder(metadata.LogTopic, 0))
	for _, path := range []string{log, filepath.Join(f.dir, flush.JournalName)} {
		_, err := f.fs.Stat(path)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("broker: %s: %w", path, err)
		case err != nil && path == log:
			return nil // a new folder
		case err != nil:
			return fmt.Errorf("broker: %s is missing but %s exists, as in a folder that was copied in part: copy it again, or "+
				"make a new journal with \"millrace log repair --new-journal %s\"", path, log, f.dir)
		}
	}
	return nil
}

// create writes meta.properties. A folder that has partitions but has lost the
// file is refused: what is in it must not be taken for a new cluster's.
func (f *folder) create(path string) error {
	log := filepath.Join(f.dir, replicas.Folder(metadata.LogTopic, 0))
	if _, err := f.fs.Stat(log); err == nil {
		return fmt.Errorf("broker: %s is missing but %s exists: restore the file, or move the folder away", path, log)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("broker: %s: %w", log, err)
	}
	if f.nodeID == 0 {
		f.nodeID = 1
	}
	f.clusterID = newUUID(f.random)
	text := fmt.Sprintf("version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\nmillrace.format=%d\n",
		f.clusterID, f.nodeID, newUUID(f.random), formatVersion)
	if err := vfs.WriteFile(f.fs, path, []byte(text), true); err != nil {
		return fmt.Errorf("broker: data folder %s: %w", f.dir, err)
	}
	return nil
}

// newUUID is a random id in Kafka's text form, 22 characters of base64.
func newUUID(random io.Reader) string {
	id := metadata.NewIDFrom(random)
	return base64.RawURLEncoding.EncodeToString(id[:])
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
