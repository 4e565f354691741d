// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package testkit_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stagger-go/stagger/internal/testkit"
)

// outer is the test that Judge fails.
type outer struct {
	testing.TB

	errors []string
}

func (o *outer) Errorf(format string, args ...any) {
	o.errors = append(o.errors, fmt.Sprintf(format, args...))
}
func (o *outer) Logf(string, ...any) {}
func (o *outer) Helper()             {}

func TestJudge(t *testing.T) {
	t.Parallel()
	for misses, want := range map[int]struct {
		plays  int
		errors []string
	}{
		0: {1, nil},
		1: {2, nil},
		2: {3, nil},
		3: {3, []string{"in each of 3 plays, here in the last: play 3 misses", "in each of 3 plays, here in the last: twice"}},
		9: {3, []string{"in each of 3 plays, here in the last: play 3 misses", "in each of 3 plays, here in the last: twice"}},
	} {
		played, test := 0, &outer{TB: t}
		testkit.Judge(test, func(t testing.TB) {
			played++
			if played <= misses {
				t.Errorf("play %d misses", played)
				t.Error("twice")
			}
		})
		if played != want.plays || !slices.Equal(test.errors, want.errors) {
			t.Errorf("%d misses: %d plays, errors %q; want %d, %q", misses, played, test.errors, want.plays, want.errors)
		}
	}
}
