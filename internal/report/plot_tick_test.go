// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"testing"
)

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		from, to float64
		want     []string
	}{
		{0, 12.4, []string{"0", "2", "4", "6", "8", "10", "12"}},
		{0, 8, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"}},
		{0, 0.35, []string{"0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35"}},
		{-1.5, 2, []string{"-1.5", "-1", "-0.5", "0", "0.5", "1", "1.5", "2"}},
		{0, 3.2e6, []string{"0", "500000", "1e+06", "1.5e+06", "2e+06", "2.5e+06", "3e+06"}},
	} {
		var got []string
		for _, mark := range (ticker{most: 8}).Ticks(row.from, row.to) {
			got = append(got, mark.Label)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%v to %v: %q; want %q", row.from, row.to, got, row.want)
		}
	}
}
