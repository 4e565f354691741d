// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package migrate is "stagger migrate": it turns a gRPC service config into a policy file with a comment on each decision.
package migrate

import (
	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/policy"
)

const help = `Write a policy file from a gRPC service config. The policies don't change. Comments above
the lines explain where stagger differs from gRPC, and what to decide: which methods are
idempotent, which jitter, which budget. Spellings that not all gRPC implementations accept,
such as MaxAttempts, ".01s" and Unavailable, become those of all.

The file goes to the standard output, or to a file (--output). With --descriptors,
comments name the methods that the API doesn't declare idempotent.`

const examples = `  stagger migrate service-config.json > retry.yaml
  stagger migrate service-config.json --descriptors image.binpb --output retry.yaml`

// Command returns "stagger migrate".
func Command() *cobra.Command {
	var (
		output string
		images []string
	)
	c := &cobra.Command{
		Use:               "migrate FILE",
		Short:             "Write a policy file from a gRPC service config",
		Long:              help,
		Example:           examples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cli.CompleteFile,
		RunE: func(c *cobra.Command, args []string) error {
			known, err := cli.LoadAPI(images)
			if err != nil {
				return err
			}
			data, err := cli.ReadFile(c, args[0])
			if err != nil {
				return err
			}
			name := cli.FileName(args[0])
			data, changed := respell(name, data)
			set, err := policy.Parse(name, data) // reports errors, with their lines
			if err != nil {
				return inOriginal(err, changed)
			}
			file, err := commented(name, data, changed, methods.Describe(set, known.Only().Files...), known)
			if err != nil {
				return err
			}
			return cli.WriteFile(c, output, file)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write to instead of the standard output")
	_ = c.MarkFlagFilename("output", "yaml", "yml") // the flag is there
	cli.DescriptorsFlag(c, &images)
	return c
}
