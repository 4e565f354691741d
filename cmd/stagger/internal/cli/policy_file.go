// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
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

// Load reads descriptor sets and a policy file, or for "-" the command's input. The set then knows the API.
func Load(c *cobra.Command, file string, images []string) (known API, set *policy.Set, data []byte, err error) {
	if known, err = LoadAPI(images); err != nil {
		return known, nil, nil, err
	}
	if data, err = ReadFile(c, file); err != nil {
		return known, nil, nil, err
	}
	if set, err = policy.Parse(FileName(file), data); err != nil {
		return known, nil, nil, err
	}
	set, err = known.Join(set)
	return known, set, data, err
}

// WriteJSON writes a value as JSON that people can read.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
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
