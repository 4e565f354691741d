// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

// TestCompletion asks as the scripts of "stagger completion" do. The last line is the
// directive: 4 no files, 8 files with these endings.
func TestCompletion(t *testing.T) {
	t.Parallel()
	const (
		file  = "../../examples/orders/retry.yaml"
		image = "../../examples/orders/orders.binpb"
		files = "yaml\nyml\njson\n:8"
		order = "acme.orders.v1.OrderService/"
	)
	codes := []string{
		"CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
		"FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
	var reasons []string
	for _, r := range policy.Reasons() {
		reasons = append(reasons, string(r))
	}
	for _, one := range []struct {
		args []string
		want string
	}{
		{[]string{"lin"}, "lint\tCheck policy files\n:4"},
		{[]string{"lint", ""}, files},
		{[]string{"lint", file, ""}, files},
		{[]string{"explain", ""}, files},
		{[]string{"export", ""}, files},
		{[]string{"explain", "--all", ""}, files},
		{[]string{"explain", "--all", file, ""}, ":4"},
		{[]string{"explain", file, ""}, order + "GetOrder\n" + order + "ListOrders\n:4"},
		{[]string{"explain", file, "/" + order + "L"}, "/" + order + "ListOrders\n:4"},
		{[]string{"explain", "--descriptors", image, file, order + "C"}, order + "CreateOrder\n" + order + "CancelOrder\n:4"},
		{[]string{"explain", file, order + "GetOrder", ""}, ":4"},
		{[]string{"explain", "none.yaml", ""}, ":4"},
		{[]string{"explain", "--code", ""}, strings.Join(codes, "\n") + "\n:4"}, // the shell's script takes what fits
		{[]string{"explain", "--deadline", ""}, ":4"},
		{[]string{"explain", "--reason", ""}, strings.Join(reasons, "\n") + "\n:4"},
		{[]string{"lint", "--format", ""}, "text\njson\ngithub\n:4"},
		{[]string{"explain", "--format", ""}, "text\njson\n:4"},
		{[]string{"explain", "--descriptors", ""}, "binpb\npb\ndesc\nprotoset\n:8"},
		{[]string{"version", ""}, ":4"},
	} {
		out, err := run(append([]string{"__complete"}, one.args...)...)
		out, _, _ = strings.Cut(out, "\nCompletion ended")
		if err != nil || out != one.want {
			t.Errorf("%q: %v\n%s\nwant\n%s", one.args, err, out, one.want)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out, code := process(t, "completion", shell); code != 0 || !strings.Contains(out, "__complete") {
			t.Errorf("%s: exit code %d\n%.200s", shell, code, out)
		}
	}
}
