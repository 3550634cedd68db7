package runtime

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/streams/internal/assign"
	"github.com/millrace/millrace/streams/internal/topology"
	"github.com/millrace/millrace/streams/state"
	"github.com/millrace/millrace/txn/session"
)

// run is one call of Run: what its workers share, read only once they started.
type run struct {
	app      *topology.Topology
	cluster  Cluster
	options  Options
	log      *slog.Logger
	admin    *kgo.Client
	folder   *state.Folder // nil without a StateDir
	identity string
	current  atomic.Pointer[plan]
	desk     *desk
	watch    *watch   // nil if nobody watches
	beside   []func() // ends of what runs beside
}

// open makes what the workers share.
func (r *run) open(ctx context.Context) error {
	var err error
	if r.admin, err = r.adminClient(); err != nil {
		return err
	}
	if err = r.muster(ctx); err != nil {
		return err
	}
	p, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	r.current.Store(p)
	r.desk = newDesk(p, r.options.Addr)
	return nil
}

// planned is the plan for workers that start now.
func (r *run) planned() *plan { return r.current.Load() }

// close lets go of what the workers shared.
func (r *run) close() {
	for _, end := range slices.Backward(r.beside) {
		end()
	}
	if r.admin != nil {
		r.admin.Close()
	}
	if r.folder == nil {
		return
	}
	if err := r.folder.Close(); err != nil {
		r.log.Warn("state folder", "error", err)
	}
}

// identify opens the state folder, or makes up an identity for this run.
func (r *run) identify() error {
	if r.options.StateDir == "" {
		var random [8]byte
		if _, err := rand.Read(random[:]); err != nil {
			return fmt.Errorf("streams: identity: %w", err)
		}
		r.identity = hex.EncodeToString(random[:])
		return nil
	}
	folder, err := state.OpenFolder(filepath.Join(r.options.StateDir, r.app.AppID), r.options.InstanceID)
	if err != nil {
		return fmt.Errorf("streams: application %s: %w", r.app.AppID, err)
	}
	r.folder, r.identity = folder, folder.Instance()
	if err := r.configure(); err != nil {
		return errors.Join(err, folder.Close())
	}
	return nil
}

func (r *run) clusterOptions(clientID string) session.ClusterOptions {
	return session.ClusterOptions{Seeds: r.cluster.Seeds(), Dial: r.cluster.Dial, ClientID: clientID, Logger: r.log}
}

// prepare makes the plan.
func (r *run) prepare(ctx context.Context) (*plan, error) {
	cluster, err := session.Connect(ctx, r.clusterOptions(r.app.AppID))
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	p := &preparer{app: r.app, cluster: cluster, admin: r.admin, folder: r.folder, options: r.options, log: r.log}
	return p.prepare(ctx)
}

// names gives a worker its identities: the instance id, "" for a dynamic member,
// and the transactional id.
func (r *run) names(number int) (instance, txnID string) {
	name := fmt.Sprintf("%s-%d", r.identity, number)
	if r.folder != nil {
		instance = name
	}
	return instance, r.app.AppID + "-" + name
}

// claim is what a worker says of itself before it has joined: which stores are in the
// folder, each unit to be spoken for by one of the workers.
func (r *run) claim(number int, p *plan) (assign.Claim, error) {
	c := assign.Claim{Generation: -1, Process: r.identity, Rack: r.options.Rack, Addr: r.options.Addr}
	if r.folder == nil {
		return c, nil
	}
	have := map[int32]bool{}
	for i := range p.app.Subs {
		for _, s := range p.app.Subs[i].Stores {
			if s.InMemory || s.Changelog == "" {
				continue
			}
			units, err := r.folder.Stores(s.Name)
			if err != nil {
				return c, err
			}
			for _, u := range units {
				have[u] = true
			}
		}
	}
	for u := range p.units {
		if have[u] && int(u)%r.options.Workers == number {
			c.Copies = append(c.Copies, assign.Copy{Unit: u, Lag: assign.UnknownLag})
		}
	}
	return c, nil
}

// muster ends what former runs in this folder have left on the cluster. The folder is
// locked, so nobody else is behind their names.
//
// An open transaction would be waited for by whoever asks for the group's offsets, this
// start included, until it times out. And workers that are not coming back, since there
// are fewer now or they were added at run time, would keep their tasks until their
// session is over.
func (r *run) muster(ctx context.Context) error {
	if r.folder == nil {
		return nil
	}
	was := r.folder.Workers()
	if r.options.InstanceID != "" {
		was = max(was, r.options.Workers) // the name may have been used in a folder that is gone
	}
	if was == 0 {
		return r.remember(r.options.Workers)
	}
	cluster, err := session.Connect(ctx, r.clusterOptions(r.app.AppID))
	if err != nil {
		return err
	}
	defer cluster.Close()
	group, bounded := errgroup.WithContext(ctx)
	for n := range was {
		group.Go(func() error { return r.bury(bounded, cluster, n) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return r.folder.SetWorkers(r.options.Workers)
}

// bury ends what one worker of a former run has left.
func (r *run) bury(ctx context.Context, cluster *session.Cluster, n int) error {
	instance, txnID := r.names(n)
	if n >= r.options.Workers {
		r.log.Info("a former worker is dismissed", "worker", n, "instance", instance)
		if err := cluster.Expel(ctx, r.app.AppID, instance); err != nil {
			return err
		}
	}
	p, err := cluster.NewProducer(ctx, session.ProducerOptions{TransactionalID: txnID, Timeout: r.options.TransactionTimeout})
	if err != nil {
		return err
	}
	return p.Close(ctx)
}

// remember notes how many workers have names in use.
func (r *run) remember(workers int) error {
	if r.folder == nil || workers <= r.folder.Workers() {
		return nil
	}
	return r.folder.SetWorkers(workers)
}

// adminClient is for what sessions do not do: topics and deletes.
func (r *run) adminClient() (*kgo.Client, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(r.cluster.Seeds()...), kgo.ClientID(r.app.AppID + "-admin"), kgo.Dialer(r.cluster.Dial)}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("streams: %w", err)
	}
	return client, nil
}
