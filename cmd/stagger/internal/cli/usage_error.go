// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli is what the subcommands have in common: exit codes, flags, and how they read policy files.
package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	ExitFailure = 1 // something is wrong, or cannot be read
	ExitUsage   = 2 // the command was not understood
)

// UsageError is an error in how the command was called.
type UsageError struct{ error }

// UsageErrorf returns a [UsageError] with the text that fmt.Errorf makes.
func UsageErrorf(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Unwrap returns what was not understood.
func (e UsageError) Unwrap() error { return e.error }

// ExitCode is 0 without error, [ExitUsage] for a [UsageError], else [ExitFailure].
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if _, ok := errors.AsType[UsageError](err); ok {
		return ExitUsage
	}
	return ExitFailure
}

// MarkUsageErrors makes each error that cobra finds in the arguments and flags of c, and of all commands under it, a
// [UsageError] that points to the help.
func MarkUsageErrors(c *cobra.Command) {
	hinted := func(c *cobra.Command, err error) error {
		return UsageErrorf("%w\nRun '%s --help' for usage.", err, c.CommandPath())
	}
	c.SetFlagErrorFunc(hinted)
	if allowed := c.Args; allowed != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := allowed(c, args); err != nil {
				return hinted(c, err)
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		MarkUsageErrors(sub)
	}
}
