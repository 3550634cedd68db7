package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// usageError is a command line that makes no sense.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func badUsage(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// exactly is cobra.ExactArgs as a usage error.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return badUsage("%s needs %s, got %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// atLeast is cobra.MinimumNArgs as a usage error.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return badUsage("%s needs %s", cmd.CommandPath(), what)
		}
		return nil
	}
}
