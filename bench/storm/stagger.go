// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"math/rand/v2"
	"sync"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
)

//go:embed retry.yaml
var policyFile []byte

// stagger is a client that follows the policy file. All its connections share its budget.
func stagger(seed uint64) (gear, error) {
	set, err := policy.Parse("retry.yaml", policyFile)
	if err != nil {
		return gear{}, err
	}
	retrier, err := interceptor.New(set, interceptor.WithRandom(seeded(seed)))
	if err != nil {
		return gear{}, err
	}
	// The testserver serves its methods as streams.
	return gear{retrier.DialOptions(), []grpc.ServerOption{grpc.ChainStreamInterceptor(retrier.StreamServer())}}, nil
}

// seeded is a source of jitter that repeats, as far as the calls come in the same order.
func seeded(seed uint64) func() float64 {
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a storm must repeat
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return chance.Float64()
	}
}
