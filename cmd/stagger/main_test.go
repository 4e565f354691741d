// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stagger-go/stagger/cmd/stagger/internal/lint"
)

func TestExitCodesAreForWorkflows(t *testing.T) {
	t.Parallel()
	for want, err := range map[int]error{0: nil, 1: errors.New("2 mistakes"), 2: fmt.Errorf("lint: %w", lint.MisuseError{})} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: exit code %d; want %d", err, got, want)
		}
	}
}

func TestEverySubcommandExplainsItself(t *testing.T) {
	t.Parallel()
	root := command()
	if cmd, _, err := root.Find([]string{"demo"}); err != nil || cmd.Name() != "demo" {
		t.Fatalf("demo: %v, %v", cmd, err)
	}
	for _, cmd := range root.Commands() {
		if cmd.Short == "" || cmd.Example == "" || cmd.RunE == nil {
			t.Errorf("%s: want a short text, examples and a function that returns its error", cmd.Name())
		}
	}
}
