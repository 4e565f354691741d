// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

package hang

import (
	"fmt"
	"testing"
	"time"

	_ "google.golang.org/grpc/xds" // gRPC's outlier detection is in it
)

// ejecting is docs/production.md's outlier detection. gRPC looks at the backends every second, and ejects one that fails half of its
// attempts, or more.
const ejecting = `
loadBalancingConfig:
  - outlier_detection_experimental:
      interval: 1s
      baseEjectionTime: 30s
      maxEjectionPercent: %d
      failurePercentageEjection: {threshold: 50, enforcementPercentage: %d, minimumHosts: 3, requestVolume: 5}
      childPolicy: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}]
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy: {maxAttempts: 3, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 0.1s}
`

// While one of three backends hangs, no attempt follows a slow one of an undeclared method: a third of its calls fail. With outlier
// detection, gRPC ejects the backend.
func TestEject(t *testing.T) {
	for _, row := range []struct {
		name        string
		enforcement int     // percent
		least, most float64 // success
	}{
		{"without", 0, 0.40, 0.80},
		{"with", 100, 0.90, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 3, fmt.Sprintf(ejecting, 34, row.enforcement))
			s.call(t, usual, time.Second)
			s.stop(t, 1)
			calls, failed := s.call(t, load{get: 50, create: 50}, 20*time.Second)
			success := 1 - float64(failed[create])/float64(calls[create])
			t.Logf("%.1f %% of the undeclared calls succeed, and %.1f %% of the others", 100*success, 100-100*float64(failed[get])/float64(calls[get]))
			if success < row.least || success > row.most {
				t.Errorf("%.3f of the undeclared calls succeed; want %v to %v", success, row.least, row.most)
			}
		})
	}
}

// gRPC counts any end but OK as a failure of the backend: NOT_FOUND, and calls whose users have left. So it ejects healthy servers, as many
// as maxEjectionPercent allows.
func TestEject_Healthy(t *testing.T) {
	for _, row := range []struct {
		name    string
		load    load
		most    int // maxEjectionPercent
		ejected int
	}{
		{"60 % NOT_FOUND", load{find: 60, get: 40}, 50, 2},
		{"60 % NOT_FOUND, one at most", load{find: 60, get: 40}, 25, 1},
		{"60 % of the users leave", load{watch: 60, get: 40}, 50, 2},
		{"20 % NOT_FOUND", load{find: 20, get: 80}, 50, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 4, fmt.Sprintf(ejecting, row.most, 100))
			s.call(t, row.load, 6*time.Second)
			before := s.attempts(t)
			_, failed := s.call(t, row.load, 3*time.Second)
			idle := 0
			for address, n := range s.attempts(t) {
				if n == before[address] {
					idle++
				}
			}
			t.Logf("%d of 4 backends are ejected", idle)
			if idle != row.ejected || failed[get] > 0 {
				t.Errorf("%d of 4 healthy backends are ejected, and %d calls fail; want %d, and none", idle, failed[get], row.ejected)
			}
		})
	}
}

// attempts returns how many attempts each backend has had, as the debug page counts them.
func (s *trial) attempts(t *testing.T) map[string]int {
	t.Helper()
	var is state
	s.state(t, &is)
	list := map[string]int{}
	for _, b := range is[0].Backends {
		list[b.Address] = b.Attempts
	}
	return list
}
