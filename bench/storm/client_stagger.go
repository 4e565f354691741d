// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"sync"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/outage"
	"github.com/stagger-go/stagger/policy"
)

const policyFile = "retry.yaml"

// policies are those that stagger follows.
func policies() (*policy.Set, error) {
	data, err := embedded.ReadFile(policyFile)
	if err != nil {
		return nil, err
	}
	return policy.Parse(policyFile, data)
}

// stagger is a client that follows the policy file. All its connections share its budget.
func stagger(seed uint64) (outage.Options, error) {
	set, err := policies()
	if err != nil {
		return outage.Options{}, err
	}
	retrier, err := interceptor.New(set, interceptor.WithRandom(seeded(seed)))
	if err != nil {
		return outage.Options{}, err
	}
	// The testserver serves its methods as streams.
	return outage.Options{Dial: retrier.DialOptions(), Server: []grpc.ServerOption{grpc.ChainStreamInterceptor(retrier.StreamServer())}}, nil
}

// seeded is a source of jitter that repeats, as far as the calls come in the same order.
func seeded(seed uint64) func() float64 {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}
}
