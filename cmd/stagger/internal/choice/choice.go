// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package choice is a flag that has one of a few values.
package choice

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// value is the flag's.
type value struct {
	to    *string
	names []string
}

// String is the value; pflag shows it as the default.
func (v value) String() string { return *v.to }

// Type is what help shows for the value.
func (v value) Type() string { return strings.Join(v.names, "|") }

// Set refuses what is none of the names.
func (v value) Set(name string) error {
	if !slices.Contains(v.names, name) {
		return fmt.Errorf("must be %s", list(v.names))
	}
	*v.to = name
	return nil
}

// Flag adds a flag to c whose value is one of names, the first unless it is given. A shell completes it.
func Flag(c *cobra.Command, to *string, flag, usage string, names ...string) {
	*to = names[0]
	c.Flags().Var(value{to, names}, flag, usage)
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// list is "text, json or github".
func list(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
