// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Command stagger shows and checks what retries do.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/cmd/stagger/internal/demo"
	"github.com/stagger-go/stagger/cmd/stagger/internal/explain"
	"github.com/stagger-go/stagger/cmd/stagger/internal/lint"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	os.Exit(exitCode(err)) // cobra has printed it
}

// exitCode is 0, 1 for what was found wrong, or 2 for a command that was not understood.
func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(lint.MisuseError)):
		return 2
	default:
		return 1
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:          "stagger",
		Short:        "Retries for gRPC clients that never make an outage worse",
		SilenceUsage: true, // a failed run is no misuse
	}
	root.AddCommand(demo.Command(), explain.Command(), lint.Command())
	return root
}
