// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
)

// gridClients are the grid's clients: the same calls from one process and from many, each with its own budgets, and for each
// its reference, no retries over as many connections.
func gridClients(seed uint64) []client {
	var list []client
	for _, c := range ours("", wherePicked, seed) {
		list = append(list, client{name: noRetriesName + c.name, connections: c.connections, options: noRetries})
	}
	list = append(list, ours("stagger", wherePicked, seed)...)
	for _, processes := range []int{10, 100} {
		c := ours(fmt.Sprintf("stagger, %d processes", processes), wherePicked, seed)[0]
		c.processes = processes
		list = append(list, c)
	}
	return list
}

// gridStorms are the storms with the targets of the grid, and those in which stagger is only compared with no retries. Some
// have no target: their results are only shown.
func gridStorms(t *testing.T) []storm {
	t.Helper()
	overload, ofMany := target{recovery: 1.1, share: 0.98}, target{recovery: 1.25, share: 0.95}
	helps := func(success float64) target { return target{success: success} }
	var list []storm
	for _, s := range []struct {
		file           string
		target, ofMany target
	}{
		{"blip", target{}, target{}},
		{"pulse", overload, ofMany},
		{"patient-pulse", overload, ofMany},
		{"random-failures", helps(0.999), helps(0.999)},
		{oneFails, helps(0.995), helps(0.995)},
		{"one-hangs", helps(0.99), target{}},
		{"outage", target{perCall: 1.12}, target{perCall: floors(100, 550)}},
		{"slow-tail", helps(0.999), helps(0.999)},
		{"chain-outage", target{perCall: 1.12}, target{perCall: floors(100, 220)}},
		{"chain-pulse", overload, target{}},
		{"pulse-10s", overload, target{}},
		{"pulse-60s", overload, target{}},
		{"strong-pulse", target{share: 0.98}, target{}},
		{"on-and-off", target{share: 0.98}, target{}},
		{"half-the-workers", target{}, target{}},
		{"pulse-one-down", target{}, target{}},
		{"all-slow", target{success: 0.999, perCall: 1.05}, target{success: 0.999, perCall: 1.05}},
		{"one-hangs-busy", helps(0.99), target{}},
		{"hedged-pulse", overload, target{}},
		{"hedged-slow-tail", helps(0.999), helps(0.999)},
		{"hedged-75", helps(0.999), helps(0.999)},
		{"hedged-85", helps(0.999), helps(0.999)},
		{"third-down", target{share: 1}, target{share: 1}},
		{"rolling-deploy", target{share: 1}, target{share: 1}},
	} {
		read, err := load("storms/" + s.file + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		read.target, read.ofMany = s.target, s.ofMany
		list = append(list, read)
	}
	return list
}

// floors is the number of requests per call that many processes may send in an outage of 10 s: apart from a tenth of an
// extra one per call, each has its reserve, which is 4 and 0.4 a second. A window counts for nine to ten tenths of its
// length.
func floors(processes int, callsPerSecond float64) float64 {
	return 1.1 + float64(processes)*(4+0.4*10)/10/0.9/callsPerSecond
}
