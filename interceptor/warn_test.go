// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package interceptor_test

import (
	"testing"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/spec"
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
	if warned != 1000 {
		t.Errorf("%d warnings; want 1000", warned)
	}
}
