// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package migrate is "stagger migrate": a gRPC service config as a policy file, with a comment on each decision.
package migrate

import (
	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/api"
	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/policy"
)

const help = `Write a policy file from a gRPC service config. Every service config is a policy file as
it is; what this adds are comments, above the lines that they are about, on what stagger
does otherwise than gRPC, and on what there is to decide: which methods are safe to
repeat, which jitter, which budget.

The file goes to the standard output, or to a file (--output). --descriptors reads which
methods the API declares safe, and names those that nobody does.`

const examples = `  stagger migrate service-config.json > retry.yaml
  stagger migrate service-config.json --descriptors image.binpb --output retry.yaml`

// Command is "stagger migrate".
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
			known, err := api.Load(images)
			if err != nil {
				return err
			}
			data, err := cli.ReadFile(c, args[0])
			if err != nil {
				return err
			}
			set, err := policy.Parse(cli.FileName(args[0]), data) // refuses what has mistakes, with their lines
			if err != nil {
				return err
			}
			file, err := commented(data, set, known)
			if err != nil {
				return err
			}
			return cli.WriteFile(c, output, file)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "`file` to write to instead of the standard output")
	_ = c.MarkFlagFilename("output", "yaml", "yml") // the flag is there
	api.Flag(c, &images)
	return c
}
