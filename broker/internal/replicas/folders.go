package replicas

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/core/vfs"
)

// straySuffix marks folders that were moved aside.
const straySuffix = "-stray"

// identityFile says which topic id a partition's folder belongs to, in Kafka's
// format.
const identityFile = "partition.metadata"

// Folder is the name of a partition's folder.
func Folder(topic string, index int32) string {
	return topic + "-" + strconv.Itoa(int(index))
}

// openAll opens partitions, several at a time: at start there may be thousands. Each
// gets its own outcome. The error is the first one of a partition that needs another
// start.
func (m *Manager) openAll(todo []opening, im *metadata.Image) error {
	inParallel(m.o.Clock, todo, func(o opening) {
		is := m.open(o, im)
		o.t.replicas[o.index].state.Store(is)
		if is.err != nil {
			m.offline(o.t, o.index, is)
		}
	})
	for _, o := range todo {
		if is := o.t.replicas[o.index].state.Load(); is.err != nil && !is.passing {
			return is.err
		}
	}
	return nil
}

func (m *Manager) open(o opening, im *metadata.Image) *outcome {
	dir := filepath.Join(m.o.Dir, Folder(o.t.Name, o.index))
	err := m.clear(dir, flush.ID{Topic: o.t.ID, Partition: o.index}, im)
	var p *partition.Partition
	if err == nil {
		p, err = partition.Open(partition.Options{
			FS: m.o.FS, Dir: dir,
			Topic: o.t.Name, TopicID: o.t.ID, Index: o.index, LeaderEpoch: o.epoch,
			Log: o.config, Flusher: m.o.Flusher, Files: m.o.Files, Clock: m.o.Clock, Logger: m.o.Logger, Durable: m.o.Durable,
		})
	}
	if err != nil {
		return opened(nil, fmt.Errorf("%s-%d: %w in %s: %w", o.t.Name, o.index, ErrOffline, dir, err))
	}
	return opened(p, nil)
}

// clear makes room for the folder of a partition: what is left of a removed topic
// goes, what is not known is moved aside. But where the recovery journal knows that
// the partition had records, a folder that says it is another topic's is damage: the
// log refuses it, and nothing takes its place.
func (m *Manager) clear(dir string, id flush.ID, im *metadata.Image) error {
	if _, err := m.o.FS.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	owner, ok, err := readIdentity(m.o.FS, dir)
	switch {
	case err != nil:
		return err
	case !ok || owner == id.Topic:
		return nil
	case im.Removed(owner):
		return vfs.RemoveAll(m.o.FS, dir)
	case m.o.Flusher.Register(id, nil).Point() != flush.Point{}:
		return nil
	}
	return m.setAside(dir, owner)
}

// setAside renames a folder that belongs to no known topic.
func (m *Manager) setAside(dir string, owner metadata.ID) error {
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s.%d%s", dir, n, straySuffix)
		if _, err := m.o.FS.Stat(to); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		m.o.Logger.Warn("a folder of an unknown topic is in the way and is moved aside",
			"folder", dir, "to", to, "topic id", base64.RawURLEncoding.EncodeToString(owner[:]))
		if err := m.o.FS.Rename(dir, to); err != nil {
			return err
		}
		return m.o.FS.SyncDir(filepath.Dir(dir))
	}
}

// readIdentity reads which topic a folder belongs to; ok is false when it does not
// say, or not any more: a crash can leave the file of a new partition torn. What is
// to be done then is for the log to say, which knows whether anything in the
// folder is worth keeping.
func readIdentity(fsys vfs.FS, dir string) (id metadata.ID, ok bool, err error) {
	text, err := vfs.ReadFile(fsys, filepath.Join(dir, identityFile))
	if errors.Is(err, fs.ErrNotExist) {
		return id, false, nil
	}
	if err != nil {
		return id, false, err
	}
	for line := range strings.Lines(string(text)) {
		value, found := strings.CutPrefix(strings.TrimSpace(line), "topic_id:")
		if !found {
			continue
		}
		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(value))
		if err != nil || len(raw) != len(id) {
			return id, false, nil
		}
		return metadata.ID(raw), true, nil
	}
	return id, false, nil
}

// Sweep looks through the data folder at start, after Prepare: it removes what
// is left of topics that the metadata log says were deleted, and names what
// nobody knows without touching it.
func (m *Manager) Sweep(im *metadata.Image) error {
	names, err := m.o.FS.List(m.o.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		dir := filepath.Join(m.o.Dir, name)
		info, err := m.o.FS.Stat(dir)
		if err != nil || !info.Dir || m.inUse(name) || strings.HasSuffix(name, straySuffix) {
			continue
		}
		owner, ok, err := readIdentity(m.o.FS, dir)
		// A folder gets the suffix only when the deletion is durable; its content goes
		// in any order, so it may not know any more whose it was.
		deleted := strings.HasSuffix(name, commitlog.DeletedDirSuffix) && !ok
		if err == nil && (deleted || ok && im.Removed(owner)) {
			if err := vfs.RemoveAll(m.o.FS, dir); err != nil {
				m.o.Logger.Error("what is left of a deleted topic can not be removed", "folder", dir, "error", err)
			}
			continue
		}
		m.o.Logger.Warn("folder belongs to no known topic and is left alone", "folder", dir)
	}
	return nil
}

func (m *Manager) inUse(folder string) bool {
	if folder == Folder(metadata.LogTopic, 0) {
		return true
	}
	i := strings.LastIndexByte(folder, '-')
	if i < 0 {
		return false
	}
	index, err := strconv.ParseInt(folder[i+1:], 10, 32)
	t := m.table.Load().byName[folder[:i]]
	return err == nil && t != nil && index < int64(len(t.replicas))
}
