// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package misuse tells a command that was not understood from one that found something wrong.
package misuse

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// Exit codes of every command.
const (
	Wrong         = 1 // something is wrong, or cannot be read
	NotUnderstood = 2 // the command itself
)

// Error is an error of how the command was called.
type Error struct{ error }

// Errorf returns an [Error] with the text that fmt.Errorf makes.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }

// Unwrap returns what was not understood.
func (e Error) Unwrap() error { return e.error }

// ExitCode is 0 without error, [NotUnderstood] for an [Error], else [Wrong].
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if _, ok := errors.AsType[Error](err); ok {
		return NotUnderstood
	}
	return Wrong
}

// Mark makes what cobra finds wrong with the arguments and flags of c, and of all commands under it, an
// [Error], with a hint at the help.
func Mark(c *cobra.Command) {
	hinted := func(c *cobra.Command, err error) error {
		return Errorf("%w\nRun '%s --help' for usage.", err, c.CommandPath())
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
		Mark(sub)
	}
}
