// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/api"
	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// report is what is to be said of one file.
type report struct {
	file        string
	diagnostics []policy.Diagnostic
	set         *policy.Set // nil if it is refused
}

func check(c *cobra.Command, file string, known api.API) (report, error) {
	data, err := cli.ReadFile(c, file)
	if err != nil {
		return report{}, err
	}
	r := report{file: cli.FileName(file)}
	r.diagnostics = policy.Lint(r.file, data)
	set, _ := policy.Parse(r.file, data) // the diagnostics say what is wrong
	if set == nil {
		return r, nil
	}
	if !known.Known() {
		r.set = set
		return r, nil
	}
	joined, err := known.Join(set)
	if wrong, ok := errors.AsType[*policy.Error](err); ok {
		r.diagnostics = wrong.Diagnostics
		return r, nil
	}
	r.set, r.diagnostics = joined, better(r.diagnostics, set.Warnings(), joined.Warnings())
	return r, nil
}

// better has, in place of the warnings of a set that knows no API, those of one that does.
func better(all, vague, precise []policy.Diagnostic) []policy.Diagnostic {
	list := slices.DeleteFunc(all, func(p policy.Diagnostic) bool { return slices.Contains(vague, p) })
	list = append(list, precise...)
	slices.SortStableFunc(list, func(a, b policy.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return list
}

// maxDepth is more layers than anyone has, one below the other.
const maxDepth = 10

// amplify notes what layers that each retry by these policies do to the lowest of them.
func (r *report) amplify(depth int) {
	if depth == 0 || r.set == nil {
		return
	}
	for _, p := range r.set.Policies() {
		if n := min(p.MaxAttempts(), interceptor.DefaultMaxAttempts); n > 1 {
			r.diagnostics = append(r.diagnostics, policy.Diagnostic{Severity: policy.SeverityNote, File: r.file, Field: p.Name().String(), Message: fmt.Sprintf(
				"a chain of %d layers sends up to %.0f requests to the lowest for one call; with the server interceptor in each layer, %d",
				depth, math.Pow(float64(n), float64(depth)), n)})
		}
	}
}
