// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package demo shows what retries do to a service in trouble: real clients and servers in one
// process, a scripted day, and what was measured.
package demo

import (
	"github.com/spf13/cobra"

	"github.com/stagger-go/stagger/examples/orders"
	"github.com/stagger-go/stagger/policy"
)

// Command is "stagger demo".
func Command() *cobra.Command {
	var (
		file string
		seed uint64
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Play a bad day against four clients: no retries, two usual kinds of retries, stagger",
		Long: `Play a bad day against four clients: no retries, two usual kinds of retries, stagger.

The clients make the same calls at the same times, each to four backends of its own, all in
this process. It takes about 20 seconds. Then it prints what was measured, and how stagger
decided about single calls.`,
		Example: `  stagger demo
  stagger demo --seed 7                the calls come at other times
  stagger demo --policy my/retry.yaml  stagger follows your policies for acme.orders.v1.OrderService
  stagger demo | tee demo.txt          plain text`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := load(file)
			if err != nil {
				return err
			}
			return run(cmd.Context(), set, seed, newScreen(cmd.OutOrStdout()))
		},
	}
	cmd.Flags().StringVar(&file, "policy", "", "`file` with the policies that stagger follows (default: examples/orders/retry.yaml, built in)")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "`number` that the times of the calls are drawn from")
	return cmd
}

func load(file string) (*policy.Set, error) {
	if file == "" {
		return policy.Parse(orders.File, orders.Policy)
	}
	return policy.Load(file)
}
