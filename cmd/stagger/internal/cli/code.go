// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/codename"
)

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
