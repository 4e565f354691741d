// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package methods is "stagger methods": what a policy file does for every method of an API.
package methods

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/api"
	"github.com/stagger-go/stagger/cmd/stagger/internal/choice"
	"github.com/stagger-go/stagger/cmd/stagger/internal/policyfile"
	"github.com/stagger-go/stagger/policy"
)

const help = `Show what a policy file does for every method of an API: whether its calls are
retried, hedged or neither, how many attempts they may have, who declares the
method safe to repeat, which budget pays, and which entry of the file says so.

A method that nobody declares safe is retried only if the attempt provably never
left the client. "because" names the declaration that holds: the entry that names
the method, idempotency: ASSUME, an idempotency key, or the idempotency_level of the
method in its .proto.

The API comes from descriptor sets (--descriptors). With them, names in the file
that lead to no method of the API are shown as warnings, since most are slips; with
--strict they make the command fail. Without them, the methods that the file names
are shown; (others) is what it does not name.`

const examples = `  stagger methods retry.yaml
  buf build -o image.binpb && stagger methods retry.yaml --descriptors image.binpb
  stagger methods retry.yaml --descriptors image.binpb --strict      # in a workflow: fails for slips in names
  stagger methods retry.yaml --descriptors image.binpb --format json # for programs`

// Command is "stagger methods".
func Command() *cobra.Command {
	var (
		images []string
		format string
		strict bool
	)
	c := &cobra.Command{
		Use:               "methods FILE",
		Short:             "Show which methods of an API are retried, and why",
		Long:              help,
		Example:           examples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: policyfile.CompleteOne,
		RunE: func(c *cobra.Command, args []string) error {
			a, err := ask(c, args[0], images)
			if err != nil {
				return err
			}
			show := a.text
			if format == "json" {
				show = a.json
			}
			if err := show(c.OutOrStdout()); err != nil {
				return err
			}
			if n := len(a.strays); strict && n > 0 {
				return fmt.Errorf("%d of the file's names lead to no method, and --strict is set", n)
			}
			return nil
		},
	}
	api.Flag(c, &images)
	choice.Flag(c, &format, "format", "how the answer is written", "text", "json")
	c.Flags().BoolVar(&strict, "strict", false, "fail if a name in the file leads to no method")
	return c
}

func ask(c *cobra.Command, file string, images []string) (answer, error) {
	known, err := api.Load(images)
	if err != nil {
		return answer{}, err
	}
	data, err := policyfile.Read(c, file)
	if err != nil {
		return answer{}, err
	}
	set, err := policy.Parse(policyfile.Name(file), data)
	if err != nil {
		return answer{}, err
	}
	if !known.Known() {
		return answer{rows: ofFile(set)}, nil
	}
	if set, err = known.Join(set); err != nil {
		return answer{}, err
	}
	return answer{ofAPI(set, known), strays(policyfile.Name(file), data, set, known)}, nil
}
