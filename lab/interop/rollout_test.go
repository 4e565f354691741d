// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package interop

import (
	"fmt"
	"testing"
	"time"
)

// rollout is a restart of four backends while calls go on.
type rollout struct {
	name   string
	maxAge time.Duration // of connections
	happen func(t *testing.T, b []*backend)
}

// inTurn stops each backend and restarts it 300 ms later, one after the other.
func inTurn(stop func(*backend)) func(t *testing.T, b []*backend) {
	return func(t *testing.T, backends []*backend) {
		for _, b := range backends {
			stop(b)
			pass(t, 300*time.Millisecond)
			b.start(t)
			pass(t, 300*time.Millisecond)
		}
	}
}

var rollouts = []rollout{
	{"backends stop in order, one after the other", 0, inTurn((*backend).drain)},
	{"backends are killed, one after the other", 0, inTurn((*backend).Kill)},
	{"connections of 300 ms at most", 300 * time.Millisecond, func(t *testing.T, _ []*backend) { pass(t, 2*time.Second) }},
}

// TestRollouts restarts four backends behind round_robin one after the other under 500 calls a second of each client.
func TestRollouts(t *testing.T) {
	required(t)
	const rate = 500
	clients := []client{bare(), grpcRetries(), ours(ourName, "")}
	shown := table{header: []string{"rollout"}}
	for _, c := range clients {
		shown.header = append(shown.header, c.name)
	}
	twice := map[string]int{}
	for _, r := range rollouts {
		l := newLedger()
		backends := make([]*backend, 4)
		ports := make([]int, len(backends))
		for i := range backends {
			backends[i] = startBackend(t, l, 10*time.Millisecond, r.maxAge)
			ports[i] = backends[i].port
		}
		loads := make([]*load, len(clients))
		for i, c := range clients {
			loads[i] = startLoad(t, c.name, rate, orders(dialAll(t, ports, c.options(t)...), getOrder, createOrder)...)
		}
		pass(t, 300*time.Millisecond)
		r.happen(t, backends)
		for _, l := range loads {
			l.stop()
		}
		row := []string{r.name}
		lost := map[string]int{} // idempotent calls
		for i, c := range clients {
			all := loads[i].end()
			got, made := all.of(getOrder), all.of(createOrder)
			repeated := l.repeated(loads[i].prefix() + createOrder)
			twice[c.name] += repeated
			lost[c.name] = len(got) - got.good()
			t.Logf("%s: %s: %d of %d and %d of %d lost, p99 %v, ran twice %d, failed %v", r.name, c.name,
				lost[c.name], len(got), len(made)-made.good(), len(made), all.p99(), repeated, all.codes())
			row = append(row, fmt.Sprintf("%d of %d · %d of %d · %d · %.0f ms", lost[c.name], len(got), len(made)-made.good(), len(made), repeated,
				float64(all.p99().Microseconds())/1000))
		}
		if lost[ourName] > lost[bareName] || lost[ourName] > 5 {
			t.Errorf("%s: stagger lost %d calls that may be repeated; gRPC alone %d", r.name, lost[ourName], lost[bareName])
		}
		shown.rows = append(shown.rows, row)
		for _, b := range backends {
			b.Kill()
		}
	}
	if twice[ourName]+twice[bareName] > 0 {
		t.Errorf("calls not declared idempotent that ran twice: %v", twice)
	}
	evidence.add(5, section{title: "Rollouts", text: rolloutText, tables: []table{shown}})
}

const rolloutText = `
Each client makes 500 calls a second, of 10 ms each, to four backends in Go with round_robin. In each cell: GetOrder lost · CreateOrder lost ·
CreateOrder that ran twice · p99 of all calls.`
