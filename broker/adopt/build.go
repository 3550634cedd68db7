package adopt

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/broker/inspect"
	"github.com/millrace/millrace/broker/internal/commitlog"
	"github.com/millrace/millrace/broker/internal/flush"
	"github.com/millrace/millrace/broker/internal/metadata"
	"github.com/millrace/millrace/broker/internal/partition"
	"github.com/millrace/millrace/broker/internal/replicas"
	"github.com/millrace/millrace/core/clock"
	"github.com/millrace/millrace/core/record"
	"github.com/millrace/millrace/core/vfs"
)

// build makes the new folder.
type build struct {
	o       Options
	plan    *plan
	dir     string
	flusher *flush.Flusher
}

func (b *build) run() error {
	if err := b.o.FS.MkdirAll(b.dir); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	for _, t := range b.plan.topics {
		for i, p := range t.partitions {
			if err := b.copy(p, replicas.Folder(t.Name, int32(i))); err != nil {
				return fmt.Errorf("adopt: %s: %w", p.Name(), err)
			}
		}
	}
	if err := b.logStarts(); err != nil {
		return err
	}
	if err := b.open(); err != nil {
		return err
	}
	return b.finish()
}

// copy copies what can not be derived from a partition's log. A snapshot can, but not once the batches are gone.
func (b *build) copy(p *inspect.Partition, folder string) error {
	to := filepath.Join(b.dir, folder)
	if err := b.o.FS.MkdirAll(to); err != nil {
		return err
	}
	for _, name := range p.Files() {
		switch ext := filepath.Ext(name); {
		case ext == ".log", ext == ".snapshot", name == "leader-epoch-checkpoint", name == "partition.metadata":
			if err := b.copyFile(filepath.Join(p.Dir, name), filepath.Join(to, name), ext == ".log"); err != nil {
				return err
			}
		}
	}
	return b.o.FS.SyncDir(to)
}

// copyFile copies and syncs one file.
func (b *build) copyFile(from, to string, counts bool) error {
	in, err := b.o.FS.OpenRead(from)
	if err != nil {
		return err
	}
	defer in.Close() // read only: nothing to lose
	size, err := in.Size()
	if err != nil {
		return err
	}
	out, err := b.o.FS.Create(to)
	if err != nil {
		return err
	}
	buf := make([]byte, min(size, 1<<20))
	for at := int64(0); at < size && err == nil; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), size-at)]
		if _, err = in.ReadAt(buf, at); err == nil || err == io.EOF {
			_, err = out.WriteAt(buf, at)
		}
		if counts {
			b.o.Progress(int64(len(buf)))
		}
	}
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// logStarts begins the recovery journal with what Kafka keeps in a checkpoint file, or in the names of the segments. A log of which the
// journal knows nothing begins at offset 0; one that is found to begin later has lost its beginning in a power cut.
func (b *build) logStarts() error {
	err := flush.ChangeJournal(b.o.FS, b.dir, func(points map[flush.ID]flush.Point) {
		for _, t := range b.plan.topics {
			for i, start := range t.starts {
				if start > 0 {
					points[flush.ID{Topic: t.ID, Partition: int32(i)}] = flush.Point{LogStart: start}
				}
			}
		}
	})
	if err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	return nil
}

// open opens every partition once: its recovery checks all batches, makes the indexes, and leaves a checkpoint at the end, so that
// the first start of the broker reads nothing. Then the metadata log is written.
func (b *build) open() (err error) {
	b.flusher, err = flush.New(flush.Options{FS: b.o.FS, Dir: b.dir, Clock: b.o.Clock, Logger: b.o.Logger})
	if err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	defer func() { err = errors.Join(err, b.flusher.Close()) }()
	for _, t := range b.plan.topics {
		config := replicas.LogConfig(&metadata.Topic{Name: t.Name, ID: t.ID, Config: t.config})
		for i := range t.partitions {
			p, err := b.partition(t.Name, t.ID, int32(i), t.Partitions[int32(i)].LeaderEpoch+1, config)
			if err == nil {
				err = p.Close()
			}
			if err != nil {
				return fmt.Errorf("adopt: %w", err)
			}
		}
	}
	return b.metadata()
}

func (b *build) partition(topic string, id metadata.ID, index, epoch int32, config commitlog.Config) (*partition.Partition, error) {
	return partition.Open(partition.Options{
		FS: b.o.FS, Dir: filepath.Join(b.dir, replicas.Folder(topic, index)), Topic: topic, TopicID: id, Index: index, LeaderEpoch: epoch,
		Log: config, Flusher: b.flusher, Clock: b.o.Clock, Logger: b.o.Logger, Durable: true,
	})
}

// Limits and settings of the broker's own topics, as package broker makes them.
const (
	metadataBatchMax   = 64 << 20
	internalPartitions = 4
	transactionVersion = 2
)

// changes are the records of the new metadata log.
func (b *build) changes() []metadata.Change {
	node := b.plan.report.NodeID
	out := []metadata.Change{metadata.FeatureChange{Name: metadata.TransactionVersion, Level: transactionVersion}}
	missing := map[string]bool{metadata.OffsetsTopic: true, metadata.TransactionsTopic: true}
	for _, t := range b.plan.topics {
		delete(missing, t.Name)
		out = append(out, metadata.TopicChange{Name: t.Name, ID: t.ID})
		for i := range int32(len(t.partitions)) {
			r := t.Partitions[i]
			out = append(out, metadata.PartitionChange{TopicID: t.ID, Partition: i, Leader: node, LeaderEpoch: r.LeaderEpoch + 1, Epoch: r.Epoch + 1})
		}
		for _, key := range slices.Sorted(maps.Keys(t.config)) {
			value := t.config[key]
			out = append(out, metadata.ConfigChange{Topic: t.Name, Name: key, Value: &value})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		out = append(out, metadata.NewTopic(node, name, metadata.NewID(), internalPartitions,
			map[string]string{"cleanup.policy": "compact", "segment.bytes": "104857600"})...)
	}
	if next := b.plan.cluster.NextProducerID; next > 0 {
		out = append(out, metadata.ProducerIDsChange{NodeID: node, Next: next})
	}
	return out
}

// metadata writes the metadata log: one batch, checked by the store that will read it.
func (b *build) metadata() error {
	var log collector
	store, err := metadata.Open(&log, b.plan.report.ClusterID, b.plan.report.NodeID, &log, clock.System(), b.o.Logger)
	if err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	_, err = store.ChangeNow(func(*metadata.Image) ([]metadata.Change, error) { return b.changes(), nil })
	if err = errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	var builder record.Builder
	builder.Reset(record.BuilderOptions{})
	now := b.o.Clock.Now().UnixMilli()
	for _, v := range log.values {
		builder.Append(now, nil, v, nil)
	}
	batch, err := builder.Batch()
	if err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	p, err := b.partition(metadata.LogTopic, metadata.ID{15: 1}, 0, 0, commitlog.Config{MaxMessageBytes: metadataBatchMax})
	if err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	_, err = p.Append(batch, partition.AppendOptions{Origin: partition.OriginCoordinator})
	if err = errors.Join(err, p.Close()); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	return nil
}

// finish says whose the folder is, and gives it its name.
func (b *build) finish() error {
	fsys, r := b.o.FS, b.plan.report
	var id [16]byte
	rand.Read(id[:])
	text := fmt.Sprintf("version=1\ncluster.id=%s\nnode.id=%d\ndirectory.id=%s\nmillrace.format=1\n",
		r.ClusterID, r.NodeID, strings.ReplaceAll(base64.RawURLEncoding.EncodeToString(id[:]), "-", "_"))
	if err := vfs.WriteFile(fsys, filepath.Join(b.dir, "meta.properties"), []byte(text), true); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	if err := vfs.RemoveAll(fsys, b.o.To); err != nil { // empty, or not there
		return fmt.Errorf("adopt: %w", err)
	}
	if err := fsys.Rename(b.dir, filepath.Clean(b.o.To)); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	if err := fsys.SyncDir(filepath.Dir(filepath.Clean(b.o.To))); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	return nil
}

// collector is a metadata log that keeps the records for one batch, and follows nothing.
type collector struct{ values [][]byte }

func (c *collector) Append(values [][]byte) (int64, error) {
	for _, v := range values {
		c.values = append(c.values, slices.Clone(v))
	}
	return int64(len(c.values)) - 1, nil
}

func (c *collector) Await(_ int64, fn func(error)) { fn(nil) }

func (c *collector) Replay(func(int64, []byte) error) error { return nil }

func (c *collector) Close() error { return nil }

func (c *collector) Prepare(*metadata.Image) error { return nil }

func (c *collector) Retire(_, _ *metadata.Image) {}
