// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// hostileNames are names that a pull request may put into a file: escapes of terminals, and lines for a log or for GitHub's runners.
const hostileNames = `
budgets: [{name: "b\e[31m\n::error::b\u009b", bucket: {size: 10}}]
methodConfig:
  - name: [{service: "a.\e[31mB\n::error::x\u009b\u202e", method: "M\e]0;t\a\n::error::y"}]
    retryPolicy:
      {maxAttempts: 9, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE],
       budget: "b\e[31m\n::error::b\u009b"}
  - {name: [{service: "::error::x", method: "::error::m"}], timeout: 1s}
  - {name: [{service: "::warning::x\e[1m\r"}], timeout: 1s}
loadBalancingConfig: [{round_robin: {"\e[1m\n::error::lb": 1}}]
`

const hostileScenario = `
title: "::error::title\e[31m\n::error::t"
about: "::error::about\e[31m\n\n::error::a"
services: [{name: "::error::s\e[31m\n::error::s", workers: 10, time: 1ms}]
fleets: [{name: "f\e[31m\n::error::f", rate: 10, calls: {service: "::error::s\e[31m\n::error::s", deadline: 1s}}]
phases: [{name: "p\e[31m", length: 2s}]
variants: [{name: "::error::v\e[31m\n::error::v"}, {name: w}]
`

// No command writes a name in a way that moves a terminal's cursor, or that begins a line with "::".
func TestNamesAreShown(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	policy, scenario := filepath.Join(folder, "retry.yaml"), filepath.Join(folder, "scenario.yaml")
	wrong, odd := filepath.Join(folder, "wrong.yaml"), filepath.Join(folder, "odd\x1b[31m\n::error::.yaml")
	for file, text := range map[string]string{
		policy: hostileNames, scenario: hostileScenario, odd: "methodConfig: []\n",
		wrong: `"\e[31m\n::error::key": "\e[31m\n::error::value"` + "\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const method = "a.\x1b[31mB\n::error::x\u009b\u202e/M\x1b]0;t\a\n::error::y"
	for _, args := range [][]string{
		{"lint", policy},
		{"lint", policy, "--other-clients"},
		{"lint", policy, "--format", "json"},
		{"lint", policy, "--format", "github"},
		{"lint", wrong},
		{"lint", wrong, "--format", "github"},
		{"lint", odd},
		{"explain", odd + "x", "--all"},
		{"lint", odd + "x"},
		{"explain", policy, "--all"},
		{"explain", policy, "--all", "--format", "json"},
		{"explain", policy, "--all", "--descriptors", "../../examples/orders/orders.binpb"},
		{"explain", policy, method},
		{"explain", policy, method + "x"},
		{"explain", policy, "::error::x/::error::m"},
		{"explain", wrong, "--all"},
		{"export", policy},
		{"export", policy, "--assume-idempotent"},
		{"export", policy, "--assume-idempotent", "--txt"},
		{"export", wrong},
		{"migrate", policy},
		{"migrate", wrong},
		{"simulate", scenario},
		{"simulate", wrong},
		{"simulate", "::error::x\x1b[31m"},
	} {
		out, err := run(args...)
		if out == "" {
			t.Errorf("%q: nothing is written", args)
		}
		if args[0] == "explain" && args[1] == policy && args[2] == "--all" && err != nil {
			t.Errorf("%q: %v; want a file whose names are used", args, err)
		}
		marks := args[len(args)-1] == "github" // lines with commands of our own, which name a file
		for line := range strings.Lines(out) {
			line = strings.TrimSuffix(line, "\n")
			if document.Printable(line) != line {
				t.Errorf("%q: not printable: %q", args, line)
			}
			own := marks && strings.Contains(line, " file=")
			if strings.HasPrefix(strings.TrimSpace(line), "::") && !own {
				t.Errorf("%q: a line is a command: %q", args, line)
			}
		}
	}
}
