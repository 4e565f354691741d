// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain is "stagger explain": which policy a method has, and what it does, attempt by attempt.
package explain

import (
	"math/rand/v2"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/cmd/stagger/internal/api"
	"github.com/stagger-go/stagger/cmd/stagger/internal/misuse"
	"github.com/stagger-go/stagger/cmd/stagger/internal/policyfile"
	"github.com/stagger-go/stagger/policy"
)

const help = `Show which entry of a policy file holds for a method, and what follows if every
attempt fails in the same way: how long each wait may be, how long it is for one
throw of the dice (--seed), and at which question of the pipeline the call ends.

It runs the code that the interceptor runs. Attempts take no time here, and the
budget, the circuit breaker and the room for waiting calls say yes.

METHOD is a full name, with or without the slash that gRPC puts before it. Whether it
is safe to repeat may stand in its .proto: --descriptors reads that, and the policies
that an API brings along. For "-", the policy file is read from the standard input.`

const examples = `  stagger explain retry.yaml /acme.orders.v1.OrderService/GetOrder
  stagger explain retry.yaml acme.orders.v1.OrderService/GetOrder --code RESOURCE_EXHAUSTED --pushback 500
  stagger explain retry.yaml /acme.orders.v1.OrderService/CreateOrder --deadline 300ms
  stagger explain retry.yaml /acme.orders.v1.OrderService/CancelOrder --descriptors image.binpb`

// Command is "stagger explain".
func Command() *cobra.Command {
	var (
		q      question
		seed   uint64
		images []string
	)
	q.code = codes.Unavailable
	c := &cobra.Command{
		Use:     "explain FILE METHOD",
		Short:   "Show what a policy does, attempt by attempt",
		Long:    help,
		Example: examples,
		Args:    cobra.ExactArgs(2),
		ValidArgsFunction: func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			return complete(c, args, word, images)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if q.deadline < 0 {
				return misuse.Errorf("--deadline %v: must not be negative", q.deadline)
			}
			q.method = "/" + strings.TrimPrefix(args[1], "/")
			if parts := strings.Split(q.method, "/"); len(parts) != 3 || parts[1] == "" || parts[2] == "" {
				return misuse.Errorf("method %q: must be a full name such as /acme.orders.v1.OrderService/GetOrder", args[1])
			}
			known, set, err := load(c, args[0], images)
			if err != nil {
				return err
			}
			r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // an explanation must repeat
			return write(c.OutOrStdout(), explain(set, known, q, r.Float64))
		},
	}
	c.Flags().Var(codeFlag{&q.code}, "code", "`code` that every attempt fails with, its name or number")
	c.Flags().StringVar(&q.pushback, "pushback", "", "what the server says in grpc-retry-pushback-ms, in `ms`; -1 forbids a retry")
	c.Flags().DurationVar(&q.deadline, "deadline", 0, "the caller's deadline, such as 3s; 0 is none")
	c.Flags().BoolVar(&q.inRetry, "in-retry", false, "the call is made inside of an incoming one that is itself a retry")
	c.Flags().Uint64Var(&seed, "seed", 1, "`number` that the waits are drawn from")
	api.Flag(c, &images)
	_ = c.RegisterFlagCompletionFunc("code", cobra.FixedCompletions(codeNames(), cobra.ShellCompDirectiveNoFileComp)) // the flags are there
	for _, flag := range []string{"pushback", "deadline", "seed"} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	return c
}

func load(c *cobra.Command, file string, images []string) (known api.API, set *policy.Set, err error) {
	if known, err = api.Load(images); err != nil {
		return known, nil, err
	}
	if set, err = policyfile.Load(c, file); err != nil {
		return known, nil, err
	}
	set, err = known.Join(set)
	return known, set, err
}
