package state

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"

	"github.com/millrace/millrace/core/vfs"
)

// folderFormat is the version of the folder's layout and of its identity file.
const folderFormat = 1

const (
	lockName     = "LOCK"
	identityName = "identity.json"
	storesName   = "stores"
)

// Folder is where a process keeps the state of an application: its stores, and
// who it is. It is locked, so that two processes never write to one store; and
// as the identity lives beside the stores, a process that is killed and started
// again comes back as the same member of the group, with its state at hand.
//
//	LOCK              held while the process lives
//	identity.json     format, instance id, cluster id, ids of the application's internal topics
//	stores/<name>/<n> the store of task n; see OpenStore
//
// It is safe for concurrent use.
type Folder struct {
	dir  string
	lock io.Closer

	mu       sync.Mutex
	identity identity

	stores stores
}

type identity struct {
	Format   int               `json:"format"`
	Instance string            `json:"instance"`
	Cluster  string            `json:"cluster,omitempty"`
	Topics   map[string]string `json:"topics,omitempty"` // name to id, hex
	Workers  int               `json:"workers,omitempty"`
}

// OpenFolder opens or makes the folder and locks it. The instance is the
// identity wanted; empty means the one kept in the folder, or a new random one.
// When another process has the folder the error wraps vfs.ErrLocked.
func OpenFolder(dir, instance string) (*Folder, error) {
	if err := os.MkdirAll(filepath.Join(dir, storesName), 0o755); err != nil {
		return nil, fmt.Errorf("state: folder: %w", err)
	}
	lock, err := vfs.OS().Lock(filepath.Join(dir, lockName))
	if errors.Is(err, vfs.ErrLocked) {
		return nil, fmt.Errorf("state: folder %s belongs to a running process; give each process its own: %w", dir, err)
	}
	if err != nil {
		return nil, fmt.Errorf("state: folder %s: %w", dir, err)
	}
	f := &Folder{dir: dir, lock: lock, stores: newStores(filepath.Join(dir, storesName))}
	if err := f.identify(instance); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

// identify reads the identity file, or writes a new one.
func (f *Folder) identify(instance string) error {
	path := filepath.Join(f.dir, identityName)
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		f.identity = identity{Format: folderFormat}
	case err != nil:
		return fmt.Errorf("state: %w", err)
	default:
		if err := json.Unmarshal(raw, &f.identity); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrCorrupt, path, err)
		}
		if f.identity.Format > folderFormat {
			return fmt.Errorf("%w: %s has version %d, this release reads up to %d", ErrNewerFormat, path, f.identity.Format, folderFormat)
		}
	}
	if f.identity.Instance != "" && (instance == "" || instance == f.identity.Instance) {
		return nil
	}
	if instance == "" {
		var random [8]byte
		if _, err := rand.Read(random[:]); err != nil {
			return fmt.Errorf("state: instance id: %w", err)
		}
		instance = hex.EncodeToString(random[:])
	}
	f.identity.Instance = instance
	return f.save()
}

// save replaces the identity file in one step.
func (f *Folder) save() error {
	raw, err := json.MarshalIndent(f.identity, "", "\t")
	if err != nil {
		return fmt.Errorf("state: identity: %w", err)
	}
	if err := vfs.WriteFile(vfs.OS(), filepath.Join(f.dir, identityName), append(raw, '\n'), true); err != nil {
		return fmt.Errorf("state: identity: %w", err)
	}
	return nil
}

// Instance is the identity of this process; it is the same after a restart.
func (f *Folder) Instance() string { return f.identity.Instance }

// Topics are the internal topics that this folder's application has used on the
// cluster: name to topic id. On another cluster it has used none.
func (f *Folder) Topics(cluster string) map[string][16]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	topics := map[string][16]byte{}
	if f.identity.Cluster != cluster {
		return topics
	}
	for name, s := range f.identity.Topics {
		raw, err := hex.DecodeString(s)
		if err != nil || len(raw) != 16 {
			continue // as good as unknown
		}
		topics[name] = [16]byte(raw)
	}
	return topics
}

// SetTopics remembers the internal topics on a cluster.
func (f *Folder) SetTopics(cluster string, topics map[string][16]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := map[string]string{}
	for name, id := range topics {
		kept[name] = hex.EncodeToString(id[:])
	}
	if cluster == f.identity.Cluster && maps.Equal(kept, f.identity.Topics) {
		return nil
	}
	f.identity.Cluster, f.identity.Topics = cluster, kept
	return f.save()
}

// Workers is how many workers have used the instance's name, each with a number from
// 0 on, 0 if none is known.
func (f *Folder) Workers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.identity.Workers
}

// SetWorkers remembers how many workers use the instance's name.
func (f *Folder) SetWorkers(n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.identity.Workers == n {
		return nil
	}
	f.identity.Workers = n
	return f.save()
}

// Close releases the lock. All stores are closed before.
func (f *Folder) Close() error {
	if err := f.lock.Close(); err != nil {
		return fmt.Errorf("state: folder %s: %w", f.dir, err)
	}
	return nil
}
