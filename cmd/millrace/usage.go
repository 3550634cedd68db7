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

// noSuchCommand is the Args of a command that only groups others: whatever it is
// given is a mistyped one of them.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	err := fmt.Errorf("%s has no command %q", cmd.CommandPath(), args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %q?", err, near[0])
	}
	return usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
}
