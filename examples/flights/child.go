package main

import (
	"context"
	"database/sql"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
	_ "modernc.org/sqlite"

	"github.com/millrace/millrace/broker"
	"github.com/millrace/millrace/connectors"
	"github.com/millrace/millrace/connectors/file"
	"github.com/millrace/millrace/connectors/runner"
	"github.com/millrace/millrace/connectors/sqlite"
	"github.com/millrace/millrace/streams"
)

// child is everything that gets killed: broker (unless --brokers), source, job and sink in one process. It writes its
// progress to out and returns when all that the files hold is in the SQLite table.
func child(ctx context.Context, o options, out io.Writer) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var cluster connectors.Cluster
	if len(o.brokers) > 0 {
		cluster = connectors.Brokers(o.brokers...)
	} else {
		b, err := broker.Start(ctx, broker.Config{Dir: filepath.Join(o.dir, "broker"), Logger: logger, GroupInitialRebalanceDelay: time.Millisecond})
		if err != nil {
			return err
		}
		defer func() {
			if err := b.Close(); err != nil {
				logger.Error("closing the broker", "err", err)
			}
		}()
		cluster = b
	}
	c := &parts{o: o, topics: topicsOf(o.prefix), cluster: cluster, logger: logger, out: out}
	if err := c.createTopics(ctx); err != nil {
		return err
	}
	return c.run(ctx)
}

// parts are the pieces of one child.
type parts struct {
	o       options
	topics  topics
	cluster connectors.Cluster
	logger  *slog.Logger
	out     io.Writer
	read    atomic.Int64 // flights in the log
	sourced atomic.Bool  // both files are in the log
}

func (c *parts) client(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.cluster.Seeds()...), kgo.Dialer(c.cluster.Dial)}, opts...)...)
}

// patience is how long a cluster may be away, restarting for instance, before a child gives up.
const patience = 30 * time.Second

// createTopics makes the three topics. Nothing in them may expire: the flights are of 2001.
func (c *parts) createTopics(ctx context.Context) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	forever := "-1"
	var resp kadm.CreateTopicResponses
	for until := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		resp, err = kadm.NewClient(cl).CreateTopics(ctx, 4, -1, map[string]*string{"retention.ms": &forever}, c.topics.flights, c.topics.airports, c.topics.results)
		if err == nil {
			break
		}
		if ctx.Err() != nil || time.Now().After(until) {
			return err
		}
	}
	for _, r := range resp {
		if r.Err != nil && !errors.Is(r.Err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("topic %s: %w", r.Topic, r.Err)
		}
	}
	return nil
}

func (c *parts) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sink, err := c.sink()
	if err != nil {
		return err
	}
	app := job(c.o.prefix+"flights-job", c.topics)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.source(ctx) })
	g.Go(func() error {
		return app.Run(ctx, c.cluster, streams.StateDir(filepath.Join(c.o.dir, "state")), streams.Workers(2), streams.Logger(c.logger))
	})
	g.Go(func() error { return sink.Run(ctx) })
	g.Go(func() error {
		defer stop() // the other three end without an error when the work is done
		return c.report(ctx, app)
	})
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// source reads the airports, then the flights: the table is complete before the first flight is joined.
func (c *parts) source(ctx context.Context) error {
	day := func(f file.Config) error {
		src, err := file.New(f)
		if err != nil {
			return err
		}
		r, err := runner.NewSource(runner.SourceOptions{Cluster: c.cluster, Source: src, Logger: c.logger, PositionTopic: c.o.prefix + "source-positions",
			OnProgress: func(p runner.Progress) {
				switch {
				case f.Topic != c.topics.flights:
				case p.Done: // also when an earlier child has done it all
					c.read.Store(int64(c.o.flights))
				case p.Total > 0:
					c.read.Store(int64(c.o.flights) * p.Read / p.Total) // the source measures in bytes
				}
			}})
		if err != nil {
			return err
		}
		return r.Run(ctx)
	}
	// An airport has no time of its own; the epoch is before every flight.
	epoch := func(file.Row) (time.Time, error) { return time.UnixMilli(0), nil }
	if err := day(file.Config{Name: "airports", Paths: []string{filepath.Join(c.o.dir, airportsFile)}, Topic: c.topics.airports,
		Key: file.Field("iata"), Time: epoch}); err != nil {
		return err
	}
	if err := day(file.Config{Name: "flights", Paths: []string{filepath.Join(c.o.dir, flightsFile)}, Topic: c.topics.flights,
		Key: file.Field("origin"), Time: file.TimeField("date", dateLayout, nil), UnitRecords: 200}); err != nil {
		return err
	}
	if ctx.Err() == nil {
		c.sourced.Store(true)
	}
	return nil
}

func (c *parts) sink() (*runner.Sink, error) {
	return runner.NewSink(runner.SinkOptions{
		Cluster: c.cluster, Topics: []string{c.topics.results}, Logger: c.logger,
		Group: c.o.prefix + "flights-sink", Instance: c.o.prefix + "flights-sink", ClaimTopic: c.o.prefix + "claims",
		Key: connectors.String, Value: connectors.JSON,
		New: func(int) (connectors.TxSink, error) {
			return sqlite.New(sqlite.Config{Name: "flights", Path: databasePath(c.o.dir), Table: "state_days", Mode: sqlite.Upsert,
				Keys: []string{"state", "day"},
				Columns: []sqlite.Column{
					{Name: "state", NotNull: true}, {Name: "day", NotNull: true},
					{Name: "flights", Type: sqlite.Integer}, {Name: "minutes", Type: sqlite.Integer}, {Name: "average", Type: sqlite.Real},
				}})
		},
	})
}

// report writes progress lines until everything has arrived. It looks twenty times a second.
func (c *parts) report(ctx context.Context, app *streams.App) error {
	db, err := sql.Open("sqlite", "file:"+databasePath(c.o.dir)+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer func() {
		if err := db.Close(); err != nil {
			c.logger.Warn("closing the database", "err", err)
		}
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	answered := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		p := progress{Read: int(c.read.Load()), Counted: counted(ctx, db)}
		if c.sourced.Load() {
			left, err := c.left(ctx, app)
			switch {
			case err == nil:
				answered = time.Now()
			case ctx.Err() != nil || time.Since(answered) > patience:
				return err
			}
			if p.Done = err == nil && left == 0; p.Done {
				p.Counted = counted(ctx, db)
			}
		}
		line, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(c.out, "%s\n", line); err != nil {
			return err
		}
		if p.Done {
			return nil
		}
	}
}

// counted adds up the flights in the table; before the sink has made the table there are none.
func counted(ctx context.Context, db *sql.DB) int {
	var n sql.NullInt64
	if err := db.QueryRowContext(ctx, "SELECT SUM(flights) FROM state_days").Scan(&n); err != nil {
		return 0
	}
	return int(n.Int64)
}
