// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

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

// String is the value, which help shows as the default.
func (v enumValue) String() string { return *v.to }

// Type is what help shows for the value.
func (v enumValue) Type() string { return strings.Join(v.names, "|") }

// Set refuses what is none of the names.
func (v enumValue) Set(name string) error {
	if !slices.Contains(v.names, name) {
		last := len(v.names) - 1
		return fmt.Errorf("must be %s or %s", strings.Join(v.names[:last], ", "), v.names[last])
	}
	*v.to = name
	return nil
}
