// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// Names in calls may come from users, so they are not kept forever.
func TestWarn_BoundedMemory(t *testing.T) {
	t.Parallel()
	warned := 0
	retrier := mustNew(t, mustSet(t, spec.Config{}), interceptor.WithObserver(interceptor.Observer{Diagnostic: func(policy.Diagnostic) { warned++ }}))
	for range 2 {
		for i := range 1500 {
			if err := retrier.Unary()(t.Context(), get, nil, nil, nil, answered, interceptor.MaxAttempts(-i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if warned != 100 {
		t.Errorf("%d warnings; want 100", warned)
	}
}

// Made-up names of methods spend the warnings of their kind, and no others.
func TestWarn_MadeUpNames(t *testing.T) {
	t.Parallel()
	of := map[string][]string{}
	retrier := mustNew(t, mustParse(t, `
methodConfig:
- name: [{}]
  retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 1, retryableStatusCodes: [UNAVAILABLE]}
`), interceptor.WithObserver(interceptor.Observer{Diagnostic: func(d policy.Diagnostic) { of[d.Field] = append(of[d.Field], d.String()) }}))
	call := func(method string, options ...grpc.CallOption) {
		t.Helper()
		testkit.NoError(t, retrier.Unary()(t.Context(), method, nil, nil, nil, answered, options...))
	}
	for i := range 3000 {
		call(fmt.Sprintf("/made.Up/Method%d", i))
	}
	if n := len(of["deadline"]); n != 100 || !strings.Contains(of["deadline"][99], "further warnings about calls are not given for this reason: this is the last of 100. unary calls have none") {
		t.Errorf("%d warnings of calls without a deadline, the last is %q; want 100", n, of["deadline"][n-1])
	}
	call("/made.Up/Method0", interceptor.MaxAttempts(0))
	if n := len(of["interceptor.MaxAttempts"]); n != 1 {
		t.Errorf("%d warnings of another kind; want 1", n)
	}
}
