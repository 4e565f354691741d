// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"io"
	"testing"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
)

func TestMarkErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		args []string
		want string // of an error in the call; "" for the command's own
	}{
		{"the command's own error", []string{"lint", "retry.yaml"}, ""},
		{"an argument too few", []string{"lint"}, "accepts 1 arg(s), received 0\nRun 'stagger lint --help' for usage."},
		{"a flag that there is not", []string{"lint", "--frob"}, "unknown flag: --frob\nRun 'stagger lint --help' for usage."},
		{
			"a value that a flag does not have",
			[]string{"lint", "--format", "xml", "retry.yaml"},
			`invalid argument "xml" for "--format" flag: must be text or json` + "\nRun 'stagger lint --help' for usage.",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var format string
			root := &cobra.Command{Use: "stagger", SilenceErrors: true, SilenceUsage: true}
			lint := &cobra.Command{Use: "lint", Args: cobra.ExactArgs(1), RunE: func(*cobra.Command, []string) error { return io.EOF }}
			cli.EnumFlag(lint, &format, "format", "how it is printed", "text", "json")
			root.AddCommand(lint)
			cli.MarkErrors(root)
			root.SetArgs(row.args)
			err := root.Execute()
			switch {
			case row.want == "" && (err != io.EOF || cli.ExitCode(err) != cli.ExitFailure):
				t.Errorf("%v, exit code %d; want the command's own error", err, cli.ExitCode(err))
			case row.want != "" && (err == nil || err.Error() != row.want || cli.ExitCode(err) != cli.ExitUsage):
				t.Errorf("%v, exit code %d; want %s", err, cli.ExitCode(err), row.want)
			}
			if format != "text" {
				t.Errorf("format %q; want the first by default", format)
			}
		})
	}
}
