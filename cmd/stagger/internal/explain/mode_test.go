// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
)

func TestExplainMode(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		mode       string
		want, not  []string // of the text
		inOverview shownMethod
	}{
		"enforced": {
			"mode: ENFORCE",
			[]string{"another attempt", "attempts_exhausted (3 attempts)"},
			[]string{"  mode  "},
			shownMethod{Strategy: "retried", Because: "the entry names the method", Attempts: 3},
		},
		"of a part": {
			"percent: 12.5",
			[]string{"  mode      ENFORCE, for 12.5 % of the calls; the others are OFF\n", "(3 attempts)"},
			nil,
			shownMethod{Strategy: "retried", Because: "the entry names the method, for 12.5 % of the calls; the others are OFF", Attempts: 3},
		},
		"observed": {
			"mode: OBSERVE",
			[]string{"  mode      OBSERVE: the first extra attempt is decided on, and not sent\n", "another attempt would follow", "0s and 100ms", "UNAVAILABLE: mode_off (1 attempt)"},
			[]string{"The questions after attempt"},
			shownMethod{Strategy: "observed", Because: "the mode is OBSERVE", Attempts: 1},
		},
		"off": {
			"mode: OFF",
			[]string{"  mode      OFF: no other attempt is sent\n", "no other attempt", "UNAVAILABLE: mode_off (1 attempt)"},
			[]string{"The questions after attempt", "would follow"},
			shownMethod{Strategy: "neither", Because: "the mode is OFF", Attempts: 1},
		},
		"of none": {
			"percent: 0",
			[]string{"  mode      ENFORCE, for 0 % of the calls; the others are OFF\n", "mode_off (1 attempt)"},
			nil,
			shownMethod{Strategy: "neither", Because: "percent is 0", Attempts: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := row.mode + "\nmethodConfig:\n- name: [{service: acme.orders.v1.OrderService, method: GetOrder}]\n  " + retry + "\n"
			out, err := run(t, text, "-", method)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range row.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			for _, not := range row.not {
				if strings.Contains(out, not) {
					t.Errorf("%q in\n%s", not, out)
				}
			}
			list, _ := runAll(t, text)
			got := list[0]
			if got.Strategy != row.inOverview.Strategy || got.Because != row.inOverview.Because || got.Attempts != row.inOverview.Attempts {
				t.Errorf("the overview has %+v; want %+v", got, row.inOverview)
			}
		})
	}
}
