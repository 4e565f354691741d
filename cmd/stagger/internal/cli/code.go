// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/policy"
)

// ParseCode reads the code of a failure: its name, in any case and also as Go spells it, or its number.
func ParseCode(name string) (codes.Code, bool) {
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if strings.EqualFold(name, policy.CodeName(c)) || strings.EqualFold(name, c.String()) || name == strconv.Itoa(int(c)) {
			return c, true
		}
	}
	return codes.OK, false
}

// CodeFlag adds a flag to c whose value is a status code. Shells complete it.
func CodeFlag(c *cobra.Command, to *codes.Code, flag, usage string) {
	c.Flags().Var(codeValue{to}, flag, usage)
	var names []string
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		names = append(names, policy.CodeName(code))
	}
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// codeValue implements pflag.Value.
type codeValue struct{ to *codes.Code }

// String is the code's name, which help shows as the default.
func (v codeValue) String() string { return policy.CodeName(*v.to) }

// Type is what help shows for the value.
func (codeValue) Type() string { return "code" }

// Set takes a code's name or number, as a policy file does.
func (v codeValue) Set(name string) error {
	c, ok := ParseCode(name)
	if !ok {
		return errors.New("must be a status code's name such as UNAVAILABLE, or its number, 1 to 16")
	}
	*v.to = c
	return nil
}
