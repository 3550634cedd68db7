package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/inspect"
)

// withInspector runs f with an inspector of the cluster, within --timeout.
func withInspector(cmd *cobra.Command, f func(context.Context, *inspect.Inspector) error) error {
	cl, err := newClient(cmd)
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := reach(cmd, cl); err != nil {
		return err
	}
	return within(cmd, func(ctx context.Context) error {
		i, err := inspect.Open(ctx, streams.Brokers(seedList(cmd)...))
		if err != nil {
			return err
		}
		defer i.Close()
		return f(ctx, i)
	})
}
