// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stagger-go/stagger/internal/explain"
	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/sim"
)

// The rates for which the budget is simulated, in calls a second.
const usualRate, leastRate, mostRate = 10.0, 0.1, 1000.0

// hanging is what a budget pays for in a process whose calls all hang. The timeline shows one call for which it pays; this is what the
// others get.
type hanging struct {
	Rate          float64        `json:"rate"` // calls a second
	Calls         int            `json:"calls"`
	ExtraAttempts int            `json:"extraAttempts"`
	Reasons       map[string]int `json:"reasons"` // why the calls got no other attempt
}

// simulated reports whether the simulator has calls of this kind.
func simulated(a explain.Answer) bool {
	hedge := compiled.Of(a.Policy).Hedge
	return (hedge == nil || hedge.Quantile == 0) && !a.Alone
}

// playHang plays a minute of fast responses, and one in which all attempts hang.
func playHang(ctx context.Context, set *methods.Set, a explain.Answer, rate float64, seed uint64) (*hanging, error) {
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
		return nil, err
	}
	fleet := played.Runs[0].Fleets[0]
	h := &hanging{rate, fleet.Calls + fleet.Unfinished, fleet.Extra, map[string]int{}}
	for reason, n := range fleet.Reasons {
		h.Reasons[string(reason)] = n
	}
	return h, nil
}

// text returns the result as a paragraph.
func (h *hanging) text() string {
	text := fmt.Sprintf(
		"\nAt %v calls a second (--rate), if all attempts hang for a minute after one of fast responses: %s send %s in all.",
		h.Rate, counted(h.Calls, "call"), counted(h.ExtraAttempts, "extra attempt"))
	if reason, n := mostFrequent(h.Reasons); n > 0 {
		text += fmt.Sprintf(" %s with %s.", map[bool]string{true: "All end", false: fmt.Sprint(n, " end")}[n == h.Calls], reason)
	}
	return text + "\n"
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func mostFrequent(reasons map[string]int) (reason string, n int) {
	for _, r := range slices.Sorted(maps.Keys(reasons)) {
		if reasons[r] > n {
			reason, n = r, reasons[r]
		}
	}
	return reason, n
}
