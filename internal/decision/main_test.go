// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package decision_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms = time.Millisecond
	// almostOne is the largest chance that can be drawn.
	almostOne = 1 - 1.0/(1<<53)
)

// policyOf is a checked spec, compiled.
func policyOf(t testing.TB, s spec.Policy) *policy.Policy {
	t.Helper()
	p, err := compiled.NewPolicy(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
