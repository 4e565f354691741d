// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"cmp"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/internal/policyfile/document"
)

// withDefaultKinds names the growth and the jitter that are left out.
func withDefaultKinds(b backoff.Config) backoff.Config {
	b.Growth = cmp.Or(b.Growth, backoff.GrowthExponential)
	b.Jitter = cmp.Or(b.Jitter, backoff.JitterFull)
	return b
}

// checkBackoff checks the numbers of a backoff. Other gRPC clients read the file without its growth and jitter, so it needs a multiplier
// whatever they are.
func checkBackoff(report *document.Report, prefix string, b backoff.Config) {
	numbers := backoff.Config{Initial: b.Initial, Max: b.Max, Multiplier: b.Multiplier}
	for _, err := range numbers.Errors() {
		report.Errorf(prefix+numberKeys[err.Field], err.Value, "%s", err.Message)
	}
	if notFixed(b) {
		report.Errorf(prefix+"backoffMultiplier", b.Multiplier, "must be 1 with growth FIXED, so that gRPC reads the same")
	}
}

var numberKeys = map[string]string{"Initial": "initialBackoff", "Max": "maxBackoff", "Multiplier": "backoffMultiplier"}

// notFixed reports whether gRPC, which doesn't know growth FIXED, would let this backoff grow.
func notFixed(b backoff.Config) bool {
	return b.Growth == backoff.GrowthFixed && b.Multiplier > 0 && b.Multiplier != 1
}
