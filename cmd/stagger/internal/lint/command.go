// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package lint is "stagger lint": what is wrong with policy files, and what experience says of them.
package lint

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/policy"
)

const help = `Check policy files: all mistakes at once, with line and column, and advice about what
experience has shown to go wrong. A file with mistakes is refused by every client.

The exit code is 0 if all files can be used, 1 if one has mistakes (or, with
--strict, if there is advice), 2 if the command itself was not understood.`

const examples = `  stagger lint retry.yaml
  stagger lint --strict --format github deploy/*.yaml   # in a workflow: marks the lines
  stagger lint --depth 3 retry.yaml                     # worst case of three layers
  kubectl get configmap retry -o jsonpath='{.data.retry\.yaml}' | stagger lint -`

// Command is "stagger lint".
func Command() *cobra.Command {
	var (
		format string
		strict bool
		depth  int
	)
	c := &cobra.Command{
		Use:     "lint FILE...",
		Short:   "Check policy files",
		Long:    help,
		Example: examples,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			show, ok := formats[format]
			if !ok {
				return MisuseError{fmt.Errorf("--format %q: must be text, json or github", format)}
			}
			if depth < 0 || depth > 10 {
				return MisuseError{fmt.Errorf("--depth %d: must be 0 to 10", depth)}
			}
			reports, err := check(c.InOrStdin(), files)
			if err != nil {
				return err
			}
			if err := show(c.OutOrStdout(), reports); err != nil {
				return err
			}
			if depth > 0 && format == "text" {
				amplify(c.OutOrStdout(), reports, depth)
			}
			return verdict(reports, strict)
		},
	}
	c.Flags().StringVar(&format, "format", "text", "text, json or github")
	c.Flags().BoolVar(&strict, "strict", false, "fail on advice too")
	c.Flags().IntVar(&depth, "depth", 0, "show what a chain of so many layers with this policy may do, 1 to 10")
	return c
}

// MisuseError is an error of how the command was called: exit code 2.
type MisuseError struct{ error }

// Unwrap returns what was not understood.
func (m MisuseError) Unwrap() error { return m.error }

// report is what is to be said of one file.
type report struct {
	file             string
	mistakes, advice []policy.Problem
	set              *policy.Set // nil with mistakes
}

// maxSize is more than any policy file may have.
const maxSize = 2 << 20

func check(stdin io.Reader, files []string) ([]report, error) {
	reports := make([]report, 0, len(files))
	for _, file := range files {
		data, err := read(stdin, file)
		if err != nil {
			return nil, err
		}
		r := report{file: file}
		if r.mistakes, r.advice = policy.Lint(file, data); len(r.mistakes) == 0 {
			if r.set, err = policy.Parse(file, data); err != nil {
				return nil, err
			}
		}
		reports = append(reports, r)
	}
	return reports, nil
}

func read(stdin io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxSize))
	}
	f, err := os.Open(file) //nolint:gosec // the user names it
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return io.ReadAll(io.LimitReader(f, maxSize))
}

func verdict(reports []report, strict bool) error {
	mistakes, advice := 0, 0
	for _, r := range reports {
		mistakes, advice = mistakes+len(r.mistakes), advice+len(r.advice)
	}
	switch {
	case mistakes > 0:
		return fmt.Errorf("%d mistakes", mistakes)
	case strict && advice > 0:
		return errors.New("there is advice, and --strict is set")
	default:
		return nil
	}
}

// amplify shows what layers that each retry by these policies do to the lowest of them.
func amplify(w io.Writer, reports []report, depth int) {
	for _, r := range reports {
		if r.set == nil {
			continue
		}
		for _, p := range r.set.Policies() {
			if n := min(p.MaxAttempts(), 5); n > 1 {
				fmt.Fprintf(w, "%s: %s: a chain of %d layers sends up to %.0f requests to the lowest for one call; "+ //nolint:errcheck // to a terminal
					"with the server interceptor in each layer, %d\n", r.file, p.Name(), depth, math.Pow(float64(n), float64(depth)), n)
			}
		}
	}
}
