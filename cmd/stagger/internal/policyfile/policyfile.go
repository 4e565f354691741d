// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package policyfile reads the files that commands are given, and completes their names.
package policyfile

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/policy"
)

// Read reads a file, or for "-" what stands on the command's input: at most one byte more than a file may have.
func Read(c *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(c.InOrStdin(), document.MaxBytes+1))
	}
	return document.ReadFile(file)
}

// Load reads a policy file, or for "-" the command's input.
func Load(c *cobra.Command, file string) (*policy.Set, error) {
	data, err := Read(c, file)
	if err != nil {
		return nil, err
	}
	return policy.Parse(Name(file), data)
}

// Name is what messages call a file.
func Name(file string) string {
	if file == "-" {
		return "<stdin>"
	}
	return file
}

// Complete completes any number of policy files.
func Complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// CompleteOne completes one policy file, and nothing after it.
func CompleteOne(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return Complete(c, args, word)
}
