// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/policy"
)

// ReadFile reads a file, or for "-" what stands on the command's input: at most one byte more than a file may have.
func ReadFile(c *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(c.InOrStdin(), document.MaxBytes+1))
	}
	return document.ReadFile(file)
}

// LoadPolicy reads a policy file, or for "-" the command's input.
func LoadPolicy(c *cobra.Command, file string) (*policy.Set, error) {
	data, err := ReadFile(c, file)
	if err != nil {
		return nil, err
	}
	return policy.Parse(FileName(file), data)
}

// WriteFile writes to a file, or to the command's output if it has no name.
func WriteFile(c *cobra.Command, file string, data []byte) error {
	if file == "" {
		_, err := c.OutOrStdout().Write(data)
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// FileName is what messages call a file.
func FileName(file string) string {
	if file == "-" {
		return "<stdin>"
	}
	return file
}

// CompleteFiles completes any number of policy files.
func CompleteFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
}

// CompleteFile completes one policy file, and nothing after it.
func CompleteFile(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return CompleteFiles(c, args, word)
}
