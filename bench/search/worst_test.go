// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/stagger-go/stagger/internal/sim"
)

// What was worst once must not come back.
func TestWorst(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("worst/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenario", err)
	}
	for _, file := range files {
		s, err := sim.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if loss, err := lossOf(t.Context(), s); err != nil || loss > leastLoss {
			t.Errorf("%s: %.1f points worse than no retries, %v; want at most %.0f", file, 100*loss, err, 100*leastLoss)
		}
	}
}
