// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/inside"
	"github.com/stagger-go/stagger/internal/tools/outage"
	"github.com/stagger-go/stagger/policy"
)

const policyFile = "retry.yaml"

// policies returns stagger's policies, the same in every storm except where retries go.
func policies(s storm, retries where) (*policy.Set, error) {
	data, err := embedded.ReadFile(policyFile)
	if err != nil {
		return nil, err
	}
	text := string(data)
	if retries != wherePicked {
		text += "\nloadBalancingConfig: " + s.balancing(true) + "\n"
	}
	if retries == whereElsewhereAtOnce {
		text = strings.ReplaceAll(text, "    retryPolicy:\n", "    retryPolicy:\n      firstRetry: AT_ONCE\n")
	}
	return policy.Parse(policyFile, []byte(text))
}

// stagger returns a client that follows the policy file. All connections of a process share its budget.
func stagger(s storm, retries where, seed uint64) (outage.Options, error) {
	set, err := policies(s, retries)
	if err != nil {
		return outage.Options{}, err
	}
	jitter, _ := inside.Random(seeded(seed, s.process)).(interceptor.Option)
	retrier, err := interceptor.New(set, jitter)
	if err != nil {
		return outage.Options{}, err
	}
	// The testserver serves all methods as streams.
	return outage.Options{Dial: retrier.DialOptions(), Server: retrier.ServerOptions()}, nil
}

// seeded returns a repeatable source of jitter, if the calls come in the same order. Each process has its own.
func seeded(seed, process uint64) func() float64 {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, process))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}
}
