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
	var services strings.Builder
	for i := range 11 {
		fmt.Fprintf(&services, "  - {name: s%d, backends: 100000, time: 1s}\n", i)
	}
	const fleet = "clients: 10, rate: 100, calls: {service: front, method: /a.B/C, policy: own, deadline: 1s, connections: 2}"
	for _, row := range []struct{ old, fresh, want string }{
		{fleet, "clients: 10000000, rate: 1, calls: {service: front, deadline: 1s}", ""},
		{fleet, "clients: 10000000, rate: 1, calls: {service: front, deadline: 1s, connections: 11}", "x.yaml:11:28: fleets[0].clients: 10000000: makes, with the connections of each process, too many connections, 1.1e+08; must be at most 1e+08"},
		{fleet, "clients: 10000000, rate: 1, calls: [{service: front, deadline: 1s}, {service: back, deadline: 1s}, {service: back, deadline: 2s}]", "fleets[0].clients: 10000000: makes too many processes, counted for each call that they make, 2e+07; must be at most 2e+07"},
		{"backends: 2, time: 10ms, calls: [{", "backends: 1001, time: 10ms, calls: [{service: back, connections: 100000}, {", "x.yaml:8:84: services[0].calls[0].connections: 100000: makes, with the connections of each process, too many connections, 1.001e+08"},
		{"fleets:\n", services.String() + "fleets:\n", "services[11].backends: 100000: makes too many backends of all services, 1e+06; must be at most 1e+06"},
		{"rate: 100", "rate: 100000000", "x.yaml:11:38: fleets[0].rate: 100000000: makes, with loads and lengths, too many calls, 2e+09; must be at most 1e+09"},
		{"name: all, length: 10s", "name: all, length: 10s, load: 30000", ""},
		{"queue: 10}", "backends: 1000, queue: 100000000}", ""},
		{"kind: AFTER, length: 10s}", "kind: AFTER, length: 23h}\nrecovery: {window: 25ms}", "x.yaml:15:20: recovery.window: 25ms: makes, with the length of the phases after the trouble, too many windows of all fleets in all variants, 8.28e+07; must be at most 2e+07"},
		{"kind: AFTER, length: 10s}", "kind: AFTER, length: 1h}\nbucket: 50ms\nvariants:\n" + variants(99), "x.yaml:15:9: bucket: 50ms: makes, with the length of all phases, too many buckets of all fleets and services in all variants, 2.144e+07"},
		{"kind: AFTER, length: 10s}", "kind: AFTER, length: 10s}\nvariants:\n" + variants(100), ""},
		{"kind: AFTER, length: 10s}", "kind: AFTER, length: 10s}\nvariants:\n" + variants(101), "x.yaml:16:3: variants: are 101; must be at most 100"},
		{"policies:\n", "policies:\n" + strings.Repeat("  many%d: retry.yaml\n", 100), "policies: has 101 policies; must be at most 100"},
		{fleet, "rate: 1, calls: {service: front, deadline: 1s, connections: 11}}\nvariants:\n  - {name: few}\n  - {name: many, clients: 10000000", "x.yaml:11:5: fleets[0]: makes, with the connections of each process, too many connections"},
		{"backends: 2, time", "backends: 6000, time", ""},
	} {
		for n := 0; strings.Contains(row.fresh, "%d"); n++ {
			row.fresh = strings.Replace(row.fresh, "%d", fmt.Sprint(n), 1)
		}
		text := strings.Replace(modest, row.old, row.fresh, 1)
		if text == modest {
			t.Fatalf("%q is not in the file", row.old)
		}
		_, err := parse(text)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%.60q: error\n%v\nwant\n%s", row.fresh, err, row.want)
		}
	}
	if _, err := parse(modest); err != nil {
		t.Error(err)
	}
}

func variants(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  - {name: v%d}\n", i)
	}
	return b.String()
}

// Scenarios written in Go, and clients from the command line, have the same limits.
func TestBoundsRun(t *testing.T) {
	t.Parallel()
	s := small()
	s.Fleets[0].Rate, s.Fleets[0].Calls[0].Connections = 1, 100_000
	if _, err := s.Run(t.Context(), Options{Clients: 1 << 30}); err == nil || !strings.Contains(err.Error(), `sim: small: variant "small": fleets[0].clients makes too many processes`) {
		t.Errorf("error %v", err)
	}
}
