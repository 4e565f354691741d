// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

// Package explain is "stagger explain": which policy a method has, and what it does, attempt by attempt.
package explain

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/policy"
)

const help = `Show which entry of a policy file holds for a method, and what follows if every
attempt fails in the same way: how long each wait may be, how long it is for one
throw of the dice (--seed), and at which question of the pipeline the call ends.

It runs the code that the interceptor runs. Attempts take no time here, and the
budget, the circuit breaker and the room for waiting calls say yes.`

const examples = `  stagger explain retry.yaml /acme.orders.v1.OrderService/GetOrder
  stagger explain retry.yaml acme.orders.v1.OrderService/GetOrder --code RESOURCE_EXHAUSTED --pushback 500
  stagger explain retry.yaml /acme.orders.v1.OrderService/CreateOrder --deadline 300ms`

// Command is "stagger explain".
func Command() *cobra.Command {
	var (
		q        question
		code     string
		seed     uint64
		deadline time.Duration
	)
	c := &cobra.Command{
		Use:     "explain FILE METHOD",
		Short:   "Show what a policy does, attempt by attempt",
		Long:    help,
		Example: examples,
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			set, err := policy.Load(args[0])
			if err != nil {
				return err
			}
			if q.code, err = parseCode(code); err != nil {
				return err
			}
			if deadline < 0 {
				return fmt.Errorf("--deadline %v: must not be negative", deadline)
			}
			q.method, q.deadline = "/"+strings.TrimPrefix(args[1], "/"), deadline
			if strings.Count(q.method, "/") != 2 {
				return fmt.Errorf("method %q: must be a full name such as /acme.orders.v1.OrderService/GetOrder", args[1])
			}
			r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // an explanation must repeat
			return write(c.OutOrStdout(), explain(set, q, r.Float64))
		},
	}
	c.Flags().StringVar(&code, "code", "UNAVAILABLE", "`code` that every attempt fails with")
	c.Flags().StringVar(&q.pushback, "pushback", "", "what the server says in grpc-retry-pushback-ms, in `ms`; -1 forbids a retry")
	c.Flags().DurationVar(&deadline, "deadline", 0, "the caller's deadline, such as 3s; 0 is none")
	c.Flags().BoolVar(&q.inRetry, "in-retry", false, "the call is made inside of an incoming one that is itself a retry")
	c.Flags().Uint64Var(&seed, "seed", 1, "`number` that the waits are drawn from")
	return c
}

// parseCode takes a code's name or number, as a policy file does.
func parseCode(name string) (codes.Code, error) {
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if strings.EqualFold(name, policy.CodeName(c)) || name == strconv.FormatUint(uint64(c), 10) {
			return c, nil
		}
	}
	return 0, fmt.Errorf("--code %q: must be a status code's name such as UNAVAILABLE, or its number, 1 to 16", name)
}
