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

	"github.com/stagger-go/stagger/cmd/stagger/internal/demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1) // cobra has printed it
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:          "stagger",
		Short:        "Retries for gRPC clients that never make an outage worse",
		SilenceUsage: true, // a failed run is no misuse
	}
	root.AddCommand(demo.Command())
	return root
}
