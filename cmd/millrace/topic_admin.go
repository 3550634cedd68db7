package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// withAdmin runs f with an admin client, within --timeout.
func withAdmin(cmd *cobra.Command, f func(context.Context, *kadm.Client) error) error {
	cl, err := newClient(cmd)
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := reach(cmd, cl); err != nil {
		return err
	}
	return within(cmd, func(ctx context.Context) error { return f(ctx, kadm.NewClient(cl)) })
}

func topicError(what, topic string, err error, message string) error {
	return fmt.Errorf("%s topic %s: %w", what, topic, explained(err, message))
}

// existing looks topics up and names the first that is not there or may not be
// looked at.
func existing(ctx context.Context, adm *kadm.Client, brokers string, names []string) (kadm.TopicDetails, error) {
	topics, err := adm.ListTopics(ctx, names...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		switch t := topics[name]; {
		case errors.Is(t.Err, kerr.UnknownTopicOrPartition):
			return nil, noTopic(name, brokers)
		case t.Err != nil:
			return nil, fmt.Errorf("topic %s: %w", name, explained(t.Err, ""))
		}
	}
	return topics, nil
}

// noTopic says which topic is not there, and where.
func noTopic(name, brokers string) error {
	return fmt.Errorf("there is no topic %s at %s (%w)", name, brokers, refused{kerr.UnknownTopicOrPartition})
}
