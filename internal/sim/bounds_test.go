// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"
	"testing"
)

const modest = `title: modest
policies:
  own:
    methodConfig:
    - name: [{service: a.B, method: C}]
      retryPolicy: {maxAttempts: 5, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
services:
  - {name: front, backends: 2, time: 10ms, calls: [{service: back, method: /a.B/C, policy: own, connections: 2}]}
  - {name: back, time: 10ms, queue: 10}
fleets:
  - {name: users, clients: 10, rate: 100, calls: {service: front, method: /a.B/C, policy: own, deadline: 1s, connections: 2}}
phases:
  - {name: all, length: 10s}
  - {name: after, kind: AFTER, length: 10s}
`

// The numbers are valid one by one, but too large together.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ old, fresh, want string }{
		{"rate: 100", "rate: 100", ""},
		{"clients: 10", "clients: 10000000", ""},
		{"deadline: 1s, connections: 2", "deadline: 1s, connections: 100000", ""},
		{"backends: 2, time: 10ms, calls: [{service: back, method: /a.B/C, policy: own, connections: 2", "backends: 1001, time: 10ms, calls: [{service: back, connections: 100000", "connections of all processes, 1.001e+08; must be at most 1e+08"},
		{"rate: 100", "rate: 100000000", "calls, 2e+09; must be at most 1e+09"},
	} {
		if !strings.Contains(modest, row.old) {
			t.Fatalf("%q is not in the file", row.old)
		}
		s, err := parse(strings.Replace(modest, row.old, row.fresh, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.checkSize(0); row.want == "" && err != nil || row.want != "" && (err == nil || !strings.HasSuffix(err.Error(), row.want)) {
			t.Errorf("%s: error %v; want %s", row.fresh, err, row.want)
		}
	}
	for name, text := range map[string]string{
		"x.yaml:16:3: variants: are 101; must be at most 100": strings.Replace(modest, "kind: AFTER, length: 10s}", "kind: AFTER, length: 10s}\nvariants:\n"+strings.Repeat("  - {name: v}\n", 101), 1),
		"policies: has 101 policies; must be at most 100":     strings.Replace(modest, "policies:\n", "policies:\n"+numbered("  many%d: retry.yaml\n", 100), 1),
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v; want %s", err, name)
		}
	}
}

func numbered(line string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, line, i)
	}
	return b.String()
}

// Scenarios written in Go, and clients from the command line, have the same limits.
func TestBoundsRun(t *testing.T) {
	t.Parallel()
	s := small()
	s.Fleets[0].Rate, s.Fleets[0].Calls[0].Connections = 1, 100_000
	for name, row := range map[string]struct {
		file string
		want string
	}{
		"windows": {
			"fleets:\n" + numbered("  - {name: users%d, rate: 1, calls: {service: a, method: /a.B/C, deadline: 1s}}\n", 3) + "services: [{name: a, time: 10ms}]\n" +
				"recovery: {window: 25ms}\nphases: [{name: x, length: 1s}, {name: after, kind: AFTER, length: 82800s}]\n",
			"has too many parts of recovery windows, 2.484e+08; must be at most 1e+07: make recovery.window longer, or the phases after the trouble shorter",
		},
		"series": {
			"bucket: 1s\nfleets:\n" + numbered("  - {name: users%d, rate: 1, calls: {service: a, method: /a.B/C, deadline: 1s}}\n", 3) + "services: [{name: a, time: 10ms}]\n" +
				"phases: [{name: x, length: 82800s}]\nvariants:\n" + numbered("  - {name: v%d}\n", 100),
			"has too many values in its time series, 7.452e+07; must be at most 5e+07: make bucket longer",
		},
		"backends": {
			"fleets: [{name: users, rate: 1, calls: {service: a0, method: /a.B/C, deadline: 1s}}]\nservices:\n" + numbered("  - {name: a%d, time: 10ms, backends: 100000}\n", 11) +
				"phases: [{name: x, length: 10s}]\n",
			"has too many backends of all services, 1.1e+06; must be at most 1e+06",
		},
	} {
		large, err := parse("title: large\n" + row.file)
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := large.Run(t.Context(), Options{}); err == nil || !strings.HasSuffix(err.Error(), row.want) {
			t.Errorf("%s: error %v; want %s", name, err, row.want)
		}
	}
	if _, err := s.Run(t.Context(), Options{Clients: 1 << 30}); err == nil || !strings.Contains(err.Error(), `sim: small: variant "small": has too many connections`) {
		t.Errorf("error %v", err)
	}
}
