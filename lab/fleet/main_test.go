// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
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

func TestWritePage(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(page, []byte("no marks"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writePage(page, "text"); err == nil || !strings.Contains(err.Error(), page+": must have a line") {
		t.Errorf("%v", err)
	}
}
