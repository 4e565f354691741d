// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package format is "stagger fmt": the canonical layout of policy files.
package format

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/misuse"
	"github.com/stagger-go/stagger/cmd/stagger/internal/policyfile"
)

const help = `Give policy files the canonical layout: keys in the order of the schema, with what is
long (budgets, methodConfig, retryPolicy) last; names of codes and settings in upper
case; durations without needless zeros; quotes only where they are needed; two
blanks a level; an empty line between entries. Comments, and empty lines elsewhere, are
kept. A JSON file stays JSON.

It never changes what a file means, and refuses a file with mistakes as
stagger lint does. Without files, or for "-", it formats the standard input.

The result goes to the standard output; with --write to the file; with --diff, what
would change is printed instead. With --check the names of files with another layout
are printed (with --diff, what would change), and the exit code is 1 if there are any.`

const examples = `  stagger fmt retry.yaml
  stagger fmt -w deploy/*.yaml     # in place
  stagger fmt --check deploy/*.yaml # in a workflow
  stagger fmt -d retry.yaml        # what would change
  pbpaste | stagger fmt`

// how a result is used.
type how struct{ write, diff, check bool }

// Command is "stagger fmt".
func Command() *cobra.Command {
	var h how
	c := &cobra.Command{
		Use:               "fmt [FILE...]",
		Short:             "Give policy files the canonical layout",
		Long:              help,
		Example:           examples,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: policyfile.Complete,
		RunE: func(c *cobra.Command, files []string) error {
			if h.write && h.check {
				return misuse.Errorf("--check beside --write: keep one of the two; --check writes nothing")
			}
			if len(files) == 0 {
				files = []string{"-"}
			}
			return h.all(c, files)
		},
	}
	c.Flags().BoolVarP(&h.write, "write", "w", false, "write the result to the file")
	c.Flags().BoolVarP(&h.diff, "diff", "d", false, "print what would change")
	c.Flags().BoolVar(&h.check, "check", false, "print the names of files with another layout, and fail if there are any")
	return c
}

// all goes on with the next file when one is refused.
func (h how) all(c *cobra.Command, files []string) error {
	var faults []error
	differ := 0
	for _, file := range files {
		if file == "-" && h.write {
			return misuse.Errorf("-w: there is no file to write the standard input to")
		}
		changed, err := h.one(c, file)
		if err != nil {
			faults = append(faults, err)
		}
		if changed {
			differ++
		}
	}
	if h.check && differ > 0 {
		faults = append(faults, fmt.Errorf("%d of %d files have another layout; stagger fmt -w changes them", differ, len(files)))
	}
	return errors.Join(faults...)
}

// one formats a file, and reports whether that changes it.
func (h how) one(c *cobra.Command, file string) (changed bool, err error) {
	data, err := policyfile.Read(c, file)
	if err != nil {
		return false, err
	}
	name := policyfile.Name(file)
	out, err := format(name, data)
	if err != nil {
		return false, err
	}
	changed = !bytes.Equal(data, out)
	w := c.OutOrStdout()
	if changed && h.write {
		if err := overwrite(file, out); err != nil {
			return changed, err
		}
	}
	switch {
	case changed && h.check && !h.diff:
		_, err = fmt.Fprintln(w, name)
	case changed && h.diff:
		_, err = fmt.Fprint(w, udiff.Unified(name, name+" formatted", string(data), string(out)))
	case !h.write && !h.diff && !h.check:
		_, err = w.Write(out)
	}
	return changed, err
}

// overwrite keeps the file's permissions.
func overwrite(file string, data []byte) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, info.Mode().Perm())
}
