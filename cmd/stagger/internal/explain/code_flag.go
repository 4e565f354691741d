// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/policy"
)

// codeFlag is a flag whose value is a status code.
type codeFlag struct{ to *codes.Code }

// String is the code's name; pflag shows it as the default.
func (f codeFlag) String() string { return policy.CodeName(*f.to) }

// Type is what help shows for the value.
func (codeFlag) Type() string { return "code" }

// Set takes a code's name or number, as a policy file does.
func (f codeFlag) Set(name string) error {
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if strings.EqualFold(name, policy.CodeName(c)) || name == strconv.FormatUint(uint64(c), 10) {
			*f.to = c
			return nil
		}
	}
	return errors.New("must be a status code's name such as UNAVAILABLE, or its number, 1 to 16")
}

// codeNames are all names that the flag takes.
func codeNames() []string {
	var list []string
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		list = append(list, policy.CodeName(c))
	}
	return list
}
