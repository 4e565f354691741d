// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/stagger-go/stagger/internal/tools/must"
	"github.com/stagger-go/stagger/internal/tools/sim"
)

// Solved cases must not come back. Open cases must still fail, or their file belongs with the others.
func TestWorst(t *testing.T) {
	t.Parallel()
	for folder, open := range map[string]bool{"worst": false, "open": true} {
		files, err := filepath.Glob(folder + "/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatal(folder, "no scenario", err)
		}
		for _, file := range files {
			s := must.Get(sim.Load(file))(t)
			loss := must.Get(lossOf(t.Context(), s))(t)
			if (loss > leastLoss) != open {
				t.Errorf("%s: %.1f points worse than no retries; want more than %.0f: %v", file, 100*loss, 100*leastLoss, open)
			}
		}
	}
}
