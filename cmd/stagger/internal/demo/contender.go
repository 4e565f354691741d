// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"time"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

// contender is a client with its own idea of retries.
type contender struct {
	name    string
	what    string // in a few words
	options []grpc.DialOption
}

// What the contenders have in common.
const (
	attempts       = 4
	attemptTimeout = 200 * time.Millisecond // of those that retry
	callTimeout    = 1 * time.Second
)

// contenders are the four clients of the demo, the last of which follows the policies.
func contenders(set *policy.Set, observer interceptor.Observer) ([]contender, error) {
	retrier, err := interceptor.New(set, interceptor.WithObserver(observer))
	if err != nil {
		return nil, err
	}
	return []contender{
		{"no retries", "one attempt a call", []grpc.DialOption{grpc.WithDisableRetry()}},
		{"retry loop", "4 attempts of 200 ms, one right after the other", loop{}.options()},
		{"exponential", "4 attempts of 200 ms, after 100, 200 and 400 ms, no jitter, no budget", loop{initial: 100 * time.Millisecond}.options()},
		{stagger, "retry.yaml: jitter, a budget, a slow attempt goes on beside the next one", retrier.DialOptions()},
	}, nil
}

const stagger = "stagger"
