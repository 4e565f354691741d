// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command stagger shows and checks what retries do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/cmd/stagger/internal/demo"
	"github.com/stagger-go/stagger/cmd/stagger/internal/explain"
	"github.com/stagger-go/stagger/cmd/stagger/internal/export"
	"github.com/stagger-go/stagger/cmd/stagger/internal/faultserver"
	"github.com/stagger-go/stagger/cmd/stagger/internal/lint"
	"github.com/stagger-go/stagger/cmd/stagger/internal/simulate"
	"github.com/stagger-go/stagger/cmd/stagger/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	os.Exit(cli.ExitCode(err)) // cobra has printed it
}

func command() *cobra.Command {
	root := root()
	root.AddCommand(demo.Command(), explain.Command(), export.Command(), faultserver.Command(), lint.Command())
	root.AddCommand(simulate.Command(), version.Command())
	return finished(root)
}
