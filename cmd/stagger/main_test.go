// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

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
