// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/codename"
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

// CodeFlag adds a flag to c whose value is a status code. Shells complete it.
func CodeFlag(c *cobra.Command, to *codes.Code, flag, usage string) {
	c.Flags().Var(codeValue{to}, flag, usage)
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(codename.Failures(), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// codeValue implements pflag.Value.
type codeValue struct{ to *codes.Code }

// String is the code's name, which help shows as the default.
func (v codeValue) String() string { return codename.Of(*v.to) }

// Type is what help shows for the value.
func (codeValue) Type() string { return "code" }

// Set takes a code's name or number, as a policy file does.
func (v codeValue) Set(name string) error {
	c, ok := codename.Parse(name)
	if !ok {
		return errors.New("must be a status code's name such as UNAVAILABLE, or its number, 1 to 16")
	}
	*v.to = c
	return nil
}
