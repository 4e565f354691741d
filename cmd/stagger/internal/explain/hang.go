// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/tools/explain"
	"github.com/stagger-go/stagger/internal/tools/sim"
	"github.com/stagger-go/stagger/policy"
)

// The rates for which the budget is simulated, in calls a second.
const usualRate, leastRate, mostRate = 10.0, 0.1, 1000.0

// hangs says how many extra attempts the budget pays for in a process whose calls all hang. The timeline shows one call for which
// it pays; this is what the others get. It returns "" if no call sends an extra attempt.
func hangs(ctx context.Context, set *decision.Set, a explain.Answer, rate float64, seed uint64) (string, error) {
	if a.Policy == nil || len(a.Sent) < 2 {
		return "", nil
	}
	if hedge := a.Policy.Hedge(); hedge != nil && hedge.Quantile > 0 || a.Alone {
		return "\nWhat the budget pays for in a hang is simulated neither for a hedgingQuantile nor for calls whose client sends a stream.\n", nil
	}
	const name, service = "file", "service"
	s := sim.Scenario{
		Title: "all attempts hang", Policies: map[string]*sim.Policy{name: {Set: set}},
		Services: []sim.Service{{Name: service, Backends: 1, Workers: 10_000, Time: &sim.Distribution{A: 10 * time.Millisecond}}},
		Fleets: []sim.Fleet{{Name: "process", Clients: 1, Rate: rate, Calls: []sim.Call{
			{Service: service, Method: a.Method, Policy: name, Deadline: a.Limit},
		}}},
		Phases: []sim.Phase{
			{Name: "fast", Kind: sim.KindLead, Length: time.Minute, Load: 1},
			{Name: "hang", Length: time.Minute, Load: 1, Faults: []sim.Fault{{Service: service, Hang: true}}},
		},
	}
	played, err := s.Run(ctx, sim.Options{Seed: seed})
	if err != nil {
		return "", err
	}
	fleet := played.Runs[0].Fleets[0]
	calls := fleet.Calls + fleet.Unfinished
	text := fmt.Sprintf("\nAt %v calls a second (--rate), if all attempts hang for a minute after one of fast responses: %s send %s in all.",
		rate, counted(calls, "call"), counted(fleet.Extra, "extra attempt"))
	if reason, n := mostFrequent(fleet.Reasons); n > 0 {
		text += fmt.Sprintf(" %s with %s.", map[bool]string{true: "All end", false: fmt.Sprint(n, " end")}[n == calls], reason)
	}
	return text + "\n", nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func mostFrequent(reasons map[policy.Reason]int) (reason policy.Reason, n int) {
	for _, r := range slices.Sorted(maps.Keys(reasons)) {
		if reasons[r] > n {
			reason, n = r, reasons[r]
		}
	}
	return reason, n
}
