package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// withClient runs f with a client and an admin client on it, within --timeout.
func withClient(cmd *cobra.Command, f func(context.Context, *kgo.Client, *kadm.Client) error) error {
	cl, err := newClient(cmd)
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := reach(cmd, cl); err != nil {
		return err
	}
	return within(cmd, func(ctx context.Context) error { return f(ctx, cl, kadm.NewClient(cl)) })
}

// topicPartition names a partition.
type topicPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

func (tp topicPartition) String() string { return tp.Topic + "-" + strconv.Itoa(int(tp.Partition)) }

// moment is a time of the protocol.
func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// age is how long ago a time of the protocol was, to the second.
func age(ms int64) time.Duration { return time.Since(time.UnixMilli(ms)).Truncate(time.Second) }

// twoPhaseTimeout is the timeout of a transaction that takes part in a two-phase commit: none.
const twoPhaseTimeout = math.MaxInt32

// shardErrors names the brokers that did not answer.
func shardErrors(what string, shards []kgo.ResponseShard) error {
	var errs []error
	for _, s := range shards {
		if s.Err != nil {
			errs = append(errs, fmt.Errorf("%s: broker %d: %w", what, s.Meta.NodeID, s.Err))
		}
	}
	return errors.Join(errs...)
}

// commaList splits a flag that holds names.
func commaList(s string) []string {
	var out []string
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
