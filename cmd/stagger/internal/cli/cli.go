// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli has the parts that subcommands share: exit codes, flags, and reading policy files.
package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/policyfile/codename"
)

// Exit codes of every command.
const (
	ExitFailure = 1 // an error was found, or a file cannot be read
	ExitUsage   = 2 // usage error
)

// UsageError is an error in how the command was called.
type UsageError struct{ error }

// UsageErrorf returns a [UsageError] with the text of fmt.Errorf.
func UsageErrorf(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Unwrap returns the cause.
func (e UsageError) Unwrap() error { return e.error }

// ExitCode returns 0 without error, [ExitUsage] for a [UsageError], else [ExitFailure].
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if _, ok := errors.AsType[UsageError](err); ok {
		return ExitUsage
	}
	return ExitFailure
}

// printableError is an error with another text.
type printableError struct {
	error

	text string
}

// Error returns the text.
func (e printableError) Error() string { return e.text }

// Unwrap returns the error itself.
func (e printableError) Unwrap() error { return e.error }

// printable returns an error whose text may have names from files and arguments: each of its lines is shown as [Name] shows it.
func printable(err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = Name(line)
	}
	if text := strings.Join(lines, "\n"); text != err.Error() {
		return printableError{err, text}
	}
	return err
}

// MarkErrors turns each error of cobra in the arguments and flags of c, and of all commands under it, into a
// [UsageError] that points to the help, and makes the text of all errors printable.
func MarkErrors(c *cobra.Command) {
	hinted := func(c *cobra.Command, err error) error {
		return printable(UsageErrorf("%w\nRun '%s --help' for usage.", err, c.CommandPath()))
	}
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error { return printable(run(c, args)) }
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
		MarkErrors(sub)
	}
}

// EnumFlag adds a flag to c whose value is one of names, the first by default. Shells complete it.
func EnumFlag(c *cobra.Command, to *string, flag, usage string, names ...string) {
	*to = names[0]
	c.Flags().Var(enumValue{to, names}, flag, usage)
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// enumValue implements pflag.Value.
type enumValue struct {
	to    *string
	names []string
}

// String returns the value, which help shows as the default.
func (v enumValue) String() string { return *v.to }

// Type is what help shows for the value.
func (v enumValue) Type() string { return strings.Join(v.names, "|") }

// Set returns an error if name is not among the names.
func (v enumValue) Set(name string) error {
	if !slices.Contains(v.names, name) {
		last := len(v.names) - 1
		return fmt.Errorf("must be %s or %s", strings.Join(v.names[:last], ", "), v.names[last])
	}
	*v.to = name
	return nil
}

// CodeFlag adds a flag to c whose value is a status code. Shells complete it.
func CodeFlag(c *cobra.Command, to *codes.Code, flag, usage string) {
	c.Flags().Var(codeValue{to}, flag, usage)
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(codename.Failures(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// codeValue implements pflag.Value.
type codeValue struct{ to *codes.Code }

// String returns the code's name, which help shows as the default.
func (v codeValue) String() string { return codename.Of(*v.to) }

// Type is what help shows for the value.
func (codeValue) Type() string { return "code" }

// Set accepts a code's name or number, like a policy file.
func (v codeValue) Set(name string) error {
	c, ok := codename.Parse(name)
	if !ok {
		return errors.New("must be a status code's name such as UNAVAILABLE, or its number, 1 to 16")
	}
	*v.to = c
	return nil
}
