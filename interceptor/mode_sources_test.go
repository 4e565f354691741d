// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

// The file's modes for all calls, or for a method, apply to calls with any policy.
func TestMode_Sources(t *testing.T) {
	of := mustPolicy(t, spec.Policy{Retry: new(plain()), Idempotency: "ASSUME"})
	file := func(file, entry policy.Mode) spec.Config {
		return spec.Config{Mode: string(file), Methods: []spec.MethodConfig{{
			Names: []string{"/acme.orders.v1.OrderService/GetOrder"}, Policy: spec.Policy{Mode: string(entry)},
		}}}
	}
	for name, row := range map[string]struct {
		file     spec.Config
		policy   *policy.Policy
		attempts int
	}{
		"a call's own":              {file("", ""), of, 4},
		"the file is off":           {file(policy.ModeOff, ""), of, 1},
		"the method's entry is off": {file("", policy.ModeOff), of, 1},
		"a trial of the file":       {file(policy.ModeObserve, ""), of, 1},
		"the call's own is off": {
			file("", ""), mustPolicy(t, spec.Policy{Retry: new(plain()), Idempotency: "ASSUME", Mode: "OFF"}), 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, row.file, func(t *testing.T, s scene) {
				s.On(get, down())
				_, err := s.call(t.Context(), get, interceptor.Policy(row.policy))
				if s.Count(get) != row.attempts || row.attempts == 1 && reasonOf(err) != policy.ReasonModeOff {
					t.Errorf("%d attempts, %s; want %d", s.Count(get), reasonOf(err), row.attempts)
				}
			})
		})
	}
}

func TestMode_SuccessAllocates(t *testing.T) {
	for _, mode := range []policy.Mode{policy.ModeEnforce, policy.ModeObserve, policy.ModeOff} {
		retry := plain()
		retry.Budget = ""
		c := config(retry)
		c.Mode = string(mode)
		unary := mustNew(t, mustSet(t, c), quiet).Unary()
		ctx, opts := context.Background(), []grpc.CallOption{grpc.StaticMethod()}
		call := func() { _ = unary(ctx, get, nil, nil, nil, answered, opts...) }
		if n := testing.AllocsPerRun(1000, call); n > successAllocates {
			t.Errorf("%v: a call that succeeds at once allocates %v times; want %d", mode, n, successAllocates)
		}
	}
}
