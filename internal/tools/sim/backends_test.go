// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"time"
)

const elsewhereScenario = `
title: one of four fails
policies: {same: same.yaml, elsewhere: elsewhere.yaml, behind: behind.yaml}
services: [{name: shop, backends: 4, workers: 20, time: 10ms, queue: 100}]
fleets:
  - name: users
    rate: 400
    calls: {service: shop, method: /acme.shop.v1.Shop/Get, policy: same, deadline: 2s, connections: 2}
variants: [{name: same}, {name: elsewhere, policy: elsewhere}, {name: behind, policy: behind}]
phases:
  - {name: one down, length: 60s, faults: [{service: shop, backends: [2], down: true}]}
`

const elsewhereRetry = `
budgets: [{name: all, ratio: {percent: 1000, minPerSecond: 1000}}]
methodConfig:
- name: [{service: acme.shop.v1.Shop, method: Get}]
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], firstRetry: AT_ONCE, budget: all}
`

const elsewhereConfig = `{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}`

func withPolicies(t *testing.T, files map[string]string) *Scenario {
	t.Helper()
	s, err := Parse("s.yaml", []byte(elsewhereScenario), func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRetryElsewhere(t *testing.T) {
	t.Parallel()
	r := play(t, withPolicies(t, map[string]string{
		"same.yaml":      elsewhereRetry,
		"elsewhere.yaml": "loadBalancingConfig: [" + elsewhereConfig + ", {round_robin: {}}]" + elsewhereRetry,
		"behind.yaml":    "loadBalancingConfig: [{round_robin: {}}, " + elsewhereConfig + "]" + elsewhereRetry,
	}), Options{})
	same, elsewhere, behind := r.Runs[0].Fleets[0], r.Runs[1].Fleets[0], r.Runs[2].Fleets[0]
	// No call needs a second retry, which would wait.
	if elsewhere.Success != 1 || elsewhere.PerCall > 1.34 || elsewhere.P999 > 12*time.Millisecond {
		t.Errorf("elsewhere: success %.4f, %.3f attempts per call, p999 %v; want 1, at most 1.34, at most 12ms", elsewhere.Success, elsewhere.PerCall, elsewhere.P999)
	}
	if same.P999 < 50*time.Millisecond {
		t.Errorf("without it: p999 %v; want that of calls that failed twice, and waited", same.P999)
	}
	if behind.PerCall != same.PerCall || behind.P999 != same.P999 {
		t.Errorf("round_robin stands first in the list: %.3f attempts per call; want %.3f, as without it", behind.PerCall, same.PerCall)
	}
}

func TestRetryElsewhereRefused(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		`[{stagger_retry_elsewhere: {childPolicy: [{least_request_experimental: {}}]}}]`: "its childPolicy lists no round_robin",
		`[{outlier_detection_experimental: {childPolicy: [` + elsewhereConfig + `]}}]`:   "the list has neither at its top",
		`[{stagger_retry_elsewhere: {childPolicy: [{a: {}}, {pick_first: {}}]}}]`:        "its childPolicy lists no round_robin",
	} {
		text := "loadBalancingConfig: " + config + elsewhereRetry
		s := withPolicies(t, map[string]string{"same.yaml": text, "elsewhere.yaml": text, "behind.yaml": text})
		_, err := s.Run(context.Background(), Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "sim: same.yaml:1:22: loadBalancingConfig: the simulator plays round_robin") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", config, err, want)
		}
	}
}

// Where nothing fails, no attempt but the first is sent, and each goes where it went before.
func TestRetryElsewhereOfFirstAttempts(t *testing.T) {
	t.Parallel()
	s := withPolicies(t, map[string]string{
		"same.yaml": elsewhereRetry, "behind.yaml": elsewhereRetry,
		"elsewhere.yaml": "loadBalancingConfig: [" + elsewhereConfig + "]" + elsewhereRetry,
	})
	s.Services[0].Workers, s.Phases[0].Faults = 1, nil // so that calls wait for each other
	r := play(t, s, Options{})
	if same, elsewhere := r.Runs[0].Fleets[0], r.Runs[1].Fleets[0]; same.P99 < 30*time.Millisecond || same.Mean != elsewhere.Mean || same.P99 != elsewhere.P99 {
		t.Errorf("mean %v, p99 %v with it; want %v, %v, as without it", elsewhere.Mean, elsewhere.P99, same.Mean, same.P99)
	}
}
