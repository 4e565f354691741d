// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/policy"
	"github.com/stagger-go/stagger/testserver"
)

const (
	parcels = "../policy/testdata/descriptors/parcels.binpb"

	getParcel  = "/acme.parcels.v1.ParcelService/GetParcel"   // 5 attempts: a method's option
	listParcel = "/acme.parcels.v1.ParcelService/ListParcels" // 3: its service's; NO_SIDE_EFFECTS
	sendParcel = "/acme.parcels.v1.ParcelService/SendParcel"  // the same, but not declared safe
)

func TestAnAPIBringsItsPoliciesAlong(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]struct {
		attempts int
		reason   policy.Reason
	}{
		getParcel:                {5, policy.ReasonAttemptsExhausted},
		listParcel:               {3, policy.ReasonAttemptsExhausted},
		sendParcel:               {1, policy.ReasonNotIdempotent},
		"/acme.other.v1.Any/Get": {1, policy.ReasonNonRetryable},
	} {
		t.Run(method, func(t *testing.T) {
			play(t, policy.Config{}, func(t *testing.T, s scene) {
				s.Default(testserver.Fail(codes.Unavailable, "down"))
				_, err := s.call(t.Context(), method)
				if n := len(s.Attempts()); n != want.attempts || reasonOf(err) != want.reason || status.Code(err) != codes.Unavailable {
					t.Errorf("%v, %s after %d attempts; want %s after %d", err, reasonOf(err), n, want.reason, want.attempts)
				}
			}, interceptor.WithDescriptors(parcels))
		})
	}
}

func TestAnIdempotencyLevelOfADescriptorSetMakesAMethodSafe(t *testing.T) {
	t.Parallel()
	set := levels(t)
	retry := plain()
	alone := mustPolicy(t, policy.Spec{Retry: &retry})
	for _, row := range []struct {
		name    string
		options []interceptor.Option
		call    []grpc.CallOption
		method  string
		want    string
	}{
		{"without the set", nil, nil, create, "[]"},
		{"with the set", []interceptor.Option{interceptor.WithDescriptors(set)}, nil, create, "[100ms 200ms]"},
		{"a method without level", []interceptor.Option{interceptor.WithDescriptors(set)}, nil, "/acme.orders.v1.OrderService/DeleteOrder", "[]"},
		{"a policy of the call", []interceptor.Option{interceptor.WithDescriptors(set)}, []grpc.CallOption{interceptor.WithPolicy(alone)}, create, "[100ms 200ms]"},
		{"a policy of the call, without the set", nil, []grpc.CallOption{interceptor.WithPolicy(alone)}, create, "[]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			play(t, config(retry), func(t *testing.T, s scene) {
				s.On(row.method, testserver.Fail(codes.Unavailable, "down").Times(2), text("done"))
				_, err := s.call(t.Context(), row.method, row.call...)
				if got := s.waits(); got != row.want || (err == nil) != (row.want != "[]") {
					t.Errorf("%v after waits of %s; want %s", err, got, row.want)
				}
			}, row.options...)
		})
	}
}

func TestTheWarningsOfARetrierNameMethodsOfADescriptorSet(t *testing.T) {
	t.Parallel()
	j := new(journal)
	mustNew(t, mustSet(t, config(plain())), withJournal(j), interceptor.WithDescriptors(levels(t)))
	want := "/acme.orders.v1.OrderService/DeleteOrder will be retried only if the attempt never left the client"
	if len(j.warnings) != 1 || !strings.Contains(j.warnings[0], want) || strings.Contains(j.warnings[0], "CreateOrder") {
		t.Errorf("warnings are %q; want one with %q, and nothing of CreateOrder", j.warnings, want)
	}
}

func TestWithDescriptorsTakesItsPlaceAmongTheOptionsAsItComes(t *testing.T) {
	t.Parallel()
	described := interceptor.WithDescriptors(parcels)
	others := []interceptor.Option{quiet, interceptor.WithMaxAttempts(4), interceptor.WithRandom(func() float64 { return 0 })}
	for at := range len(others) + 1 {
		r := mustNew(t, mustSet(t, policy.Config{}), slices.Insert(slices.Clone(others), at, described)...)
		cut := slices.ContainsFunc(r.Warnings(), func(p policy.Diagnostic) bool { return p.Field == "maxAttempts of "+getParcel })
		if !cut {
			t.Errorf("as option %d, a policy of the API with 5 attempts is not cut to 4", at)
		}
	}
}

func TestAPolicyOfAnAPIIsPaidFromTheDefaultBudget(t *testing.T) {
	play(t, policy.Config{Throttling: &budget.ThrottleConfig{MaxTokens: 2, TokenRatio: 0.1}}, func(t *testing.T, s scene) {
		s.Default(testserver.Fail(codes.Unavailable, "down"))
		_, err := s.call(t.Context(), getParcel)
		if n := len(s.Attempts()); n != 1 || reasonOf(err) != policy.ReasonBudgetExhausted {
			t.Errorf("%s after %d attempts; want budget_exhausted after 1", reasonOf(err), n)
		}
	}, interceptor.WithDescriptors(parcels))
}

func TestWithDescriptorsSaysWhatWouldBeRight(t *testing.T) {
	t.Parallel()
	set := mustSet(t, policy.Config{})
	none := filepath.Join(t.TempDir(), "none.binpb")
	_, err := interceptor.New(set, interceptor.WithDescriptors(none))
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), fmt.Sprintf("interceptor: WithDescriptors(%q): ", none)) ||
		!strings.Contains(err.Error(), "buf build -o") {
		t.Errorf("a file that is not there: %v", err)
	}
	_, err = interceptor.New(set, interceptor.WithDescriptors("../README.md"))
	if fault, ok := errors.AsType[*policy.Error](err); !ok || fault.Diagnostics[0].File != "../README.md" {
		t.Errorf("a text: %v", err)
	}
	path := writeSet(t, badAPI()...)
	_, err = interceptor.New(set, interceptor.WithDescriptors(path), quiet)
	const want = "bad.proto: /acme.bad.v1.Bad/Get: (stagger.policy.v1.retry).maxAttempts: 1: must be at least 2"
	if _, ok := errors.AsType[*policy.Error](err); !ok || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a bad policy: %v; want %s", err, want)
	}
}

func TestGeneratedCodeBringsItsPoliciesAlong(t *testing.T) {
	const method = "/acme.linked.v1.Linked/Get"
	play(t, policy.Config{}, func(t *testing.T, s scene) {
		s.On(method, testserver.Fail(codes.Unavailable, "down").Times(3), text("done"))
		if _, err := s.call(t.Context(), method); err != nil || s.waits() != "[1s 1s 1s]" {
			t.Errorf("%v after waits of %s; want 3 of 1s", err, s.waits())
		}
	})
}
