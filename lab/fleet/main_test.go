// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFlags(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`argument "now": want flags only`:            {"now"},
		`"0": want a number from 1 to 1000000`:       {"-clients", "100,0"},
		`"1000001": want a number from 1 to 1000000`: {"-clients", "1000001"},
		`"many": want a number from 1 to 1000000`:    {"-clients", "many"},
	} {
		if _, err := parse(args, new(strings.Builder)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", args, err, want)
		}
	}
}
