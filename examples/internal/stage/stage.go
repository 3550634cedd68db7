// Package stage is what the examples have in common, so that each of them is about
// its job only: flags, a broker in the process or one elsewhere, topics, records
// that go in, results that are printed.
//
// A program of your own needs little of it: a cluster (streams.Brokers), topics
// that exist, and App.Run.
package stage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/millrace/millrace/streams"
)

// Play is an example.
type Play struct {
	// Name is that of its folder, and About a line on what it shows.
	Name, About string
	// Job makes the application. prefix is that of its id and of all its topics:
	// empty on a broker of its own, and new for each run on a cluster, where runs
	// must not meet.
	Job func(prefix string) *streams.App
	// In are written before the job starts.
	In []Input
	// Out are printed as they come; the example ends when each has as many results
	// as it should.
	Out []Output
}

// Main runs the example with the arguments of the process.
func (p Play) Main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := p.Run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		os.Exit(1)
	}
}

// flags are those of every example.
type flags struct {
	brokers, prefix, state string
	describe               bool
	patience               time.Duration
}

func (p Play) parse(args []string, out io.Writer) (f flags, err error) {
	fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&f.brokers, "brokers", "", "run on this cluster (host:port,…) of the Kafka protocol instead of a broker in the process")
	fs.StringVar(&f.prefix, "prefix", "", "prefix of the job's id and topics (default with --brokers: a new one)")
	fs.StringVar(&f.state, "state", "", "folder for the job's state (default: in memory)")
	fs.BoolVar(&f.describe, "describe", false, "print the topology and end")
	fs.DurationVar(&f.patience, "patience", time.Minute, "how long to wait for the results")
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "%s\n\n  go run ./examples/%s\n\n", p.About, p.Name)
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err != nil {
		return f, err
	}
	if fs.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if f.prefix == "" && f.brokers != "" {
		f.prefix = newPrefix(p.Name)
	}
	return f, nil
}

// Run runs the example: it writes the inputs, runs the job until all results are
// there, and prints them to out.
func (p Play) Run(ctx context.Context, args []string, out io.Writer) error {
	f, err := p.parse(args, out)
	if err != nil {
		return err
	}
	app := p.Job(f.prefix)
	if f.describe {
		_, err := app.Topology()
		if err == nil {
			_, err = fmt.Fprintln(out, app.Describe())
		}
		return err
	}
	cluster, stop, err := clusterOf(ctx, f.brokers)
	if err != nil {
		return err
	}
	defer stop()
	client, err := newClient(cluster)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	if err := p.fill(ctx, client, app, f.prefix); err != nil {
		return err
	}
	working, finish := context.WithCancel(ctx)
	defer finish()
	ended := make(chan error, 1)
	go func() {
		err := app.Run(working, cluster, streams.StateDir(f.state), streams.Leave())
		finish() // if it has failed, no more results come
		ended <- err
	}()
	shown := p.show(working, client, app, f.prefix, out)
	finish()
	if err := <-ended; err != nil {
		return err
	}
	return shown
}
