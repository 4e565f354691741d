// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package lint is "stagger lint": it reports errors in policy files, and gives advice.
package lint

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/policyfile/document"
)

const help = `Check policy files: all errors in one run, with line, column and remedy, and advice about
common mistakes. Every client refuses a file with errors.

There is advice about: too many attempts; backoffs longer than a minute, too short for
timers, or without jitter; codes of permanent errors, or codes listed twice; no budget,
or one that never pays for an attempt after a timeout; waits that do not fit
into the timeout; DEADLINE_EXCEEDED where only the whole call has a timeout; names that
match nothing, with the character or word that is wrong; an entry that names a method
such as CreateOrder, and so declares it idempotent. Notes list the methods that have
retries and aren't declared idempotent, and those whose entry hides a policy; name the
packages that a program imports for load balancing and admission; and say so of a file
that retries and names no load balancing. With
--descriptors, lint knows the methods of the API. It reports names of methods that a
service lacks, and also lists the methods that only the file declares idempotent. With
--other-clients there is advice about methods that gRPC clients without stagger would
retry, and stagger would not.

Formats: text for people, json for programs, github for workflows, where it marks the
lines of a pull request.

A file that cannot be read does not hide the errors of the others.

The exit code is 0 if all files are valid, 1 if one has errors or cannot be read (or,
with --strict, if there is advice), 2 for a usage error.`

const examples = `  stagger lint retry.yaml
  stagger lint --strict --format github deploy/*.yaml   # in a workflow: marks the lines
  stagger lint --descriptors image.binpb retry.yaml     # names methods that aren't idempotent
  kubectl get configmap retry -o jsonpath='{.data.retry\.yaml}' | stagger lint -`

// Command returns "stagger lint".
func Command() *cobra.Command {
	var (
		format string
		strict bool
		silent bool
		others bool
		images []string
	)
	c := &cobra.Command{
		Use:               "lint FILE...",
		Short:             "Check policy files",
		Long:              help,
		Example:           examples,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: cli.CompleteFiles,
		RunE: func(c *cobra.Command, files []string) error {
			var reports []report
			known, err := cli.LoadAPI(images)
			if err != nil {
				reports = append(reports, report{diagnostics: unreadable(err)})
			}
			for _, file := range files {
				reports = append(reports, check(c, file, known, others))
			}
			if silent {
				reports = quiet(reports)
			}
			if err := formats[format](c.OutOrStdout(), reports); err != nil {
				return err
			}
			return judge(reports, strict)
		},
	}
	cli.EnumFlag(c, &format, "format", "how problems are written", "text", "json", "github")
	c.Flags().BoolVar(&strict, "strict", false, "fail on advice too")
	c.Flags().BoolVarP(&silent, "quiet", "q", false, "write nothing about files without errors and advice")
	c.Flags().BoolVar(&others, "other-clients", false, "give advice for gRPC clients without stagger that use the same file")
	cli.DescriptorsFlag(c, &images)
	return c
}

func judge(reports []report, strict bool) error {
	found := map[string]int{}
	for _, d := range all(reports) {
		found[d.Severity]++
	}
	switch errs := found[document.SeverityError]; {
	case errs == 1:
		return errors.New("1 error")
	case errs > 0:
		return fmt.Errorf("%d errors", errs)
	case strict && found[document.SeverityWarning] > 0:
		return errors.New("there is advice, and --strict is set")
	default:
		return nil
	}
}
