// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command stagger checks and explains retry policies.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/cmd/stagger/internal/demo"
	"github.com/stagger-go/stagger/cmd/stagger/internal/explain"
	"github.com/stagger-go/stagger/cmd/stagger/internal/export"
	"github.com/stagger-go/stagger/cmd/stagger/internal/lint"
	"github.com/stagger-go/stagger/cmd/stagger/internal/migrate"
	"github.com/stagger-go/stagger/cmd/stagger/internal/simulate"
)

func main() {
	os.Exit(cli.ExitCode(command().Execute())) // cobra has already printed
}

func command() *cobra.Command {
	root := root()
	root.AddCommand(demo.Command(), explain.Command(), export.Command(), lint.Command())
	root.AddCommand(migrate.Command(), simulate.Command(), versionCommand())
	return finished(root)
}
