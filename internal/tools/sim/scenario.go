// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/policy"
)

// Scenario is what is to be played. [Load] reads one from a file, whose keys are these fields in camelCase.
type Scenario struct {
	Title    string             // in a line
	About    string             // what it shows
	Seed     uint64             // of all chance; [Options] may name another
	Bucket   time.Duration      // that things are counted in over time; 0: a 200th of the whole time, at least 200 ms
	Recovery Recovery           // zero: 99 % of 250 ms
	Policies map[string]*Policy // by the names that calls use
	Variants []Variant          // what is compared; none: the scenario as it is
	Services []Service
	Fleets   []Fleet
	Phases   []Phase
}

// Recovery is when a fleet counts as served well again after the trouble: in the first window of its calls in
// which so many succeed.
type Recovery struct {
	Success float64 // 0 to 1
	Window  time.Duration
}

// Variant is the scenario with other policies, and maybe with more clients that share the same load.
type Variant struct {
	Name     string
	Policies map[string]string // by a fleet's or a service's name: what its calls follow instead
	Set      string            // JSON: changes each entry of these policies, null removes a key (RFC 7386); "": nothing
	All      string            // what the calls of all others follow instead; "": their own
	Clients  int               // of each fleet; 0: as the fleet says
	Method   string            // of all calls that follow All; "": their own
	Guard    *bool             // of every service; nil: as the service says
	Blind    bool              // calls learn nothing of the methods that they call, as gRPC's own retries do not
}

// Service is some backends that do the same.
type Service struct {
	Name      string
	Backends  int
	Workers   int // of each backend: requests that it works on at a time
	Queue     int // requests that may wait at each backend
	Order     Order
	Time      *Distribution
	Refuse    codes.Code // what a backend answers whose queue is full
	Abandoned Abandoned
	Guard     bool // it runs the chain guard: who called learns when a call below has given up
	Reports   bool // its backends report with each answer which part of their workers is busy
	Calls     []Call
}

// Order is which of the requests in its queue a backend serves next.
type Order uint8

// The orders.
const (
	OrderFIFO Order = iota // the one that waits longest
	OrderLIFO              // the newest
)

// Abandoned is what a backend does with requests in its queue whose clients have left.
type Abandoned uint8

// The kinds.
const (
	AbandonedServe Abandoned = iota // it does not know, and works on them as on any
	AbandonedDrop                   // it takes them out
)

// Fleet is many clients of one kind.
type Fleet struct {
	Name    string
	Clients int     // processes, each with budgets of its own
	Rate    float64 // calls per second of all clients together, before the load of a phase; 0: Think
	Think   *Distribution
	Calls   []Call // by one process under the same budgets; at random by their shares
}

// Call is who is called, and how.
type Call struct {
	Share       float64 // of a fleet's calls, in proportion to the others'; 0: 1
	Service     string
	Method      string // "/package.Service/Method", by which the policy is found
	Policy      string // a name of Policies; "" is none, one attempt
	Deadline    time.Duration
	Work        float64 // a worker takes so many times the service's time; 0: 1
	Connections int     // of each process, each of which goes round the backends; 0: 1
	Clients     int     // of a service: processes that share budgets; 0: one for each backend
	Attempts    int     // cap over the policies' maxAttempts, as maxAttemptsLimit; 0: the file's maxAttemptsLimit
	Delay       *Distribution
	Loss        float64 // part of the messages that never arrive
}

// service finds one; nil if there is none.
func (s *Scenario) service(name string) *Service {
	for i := range s.Services {
		if s.Services[i].Name == name {
			return &s.Services[i]
		}
	}
	return nil
}

// made is a call, and who makes it: a service or a fleet.
type made struct {
	*Call

	from        string
	maker, path string // the fields of who makes it, and of the call
	fleet       bool
	processes   int // as the scenario says
}

// calls are those of services, then those of fleets.
func (s *Scenario) calls() (list []made) {
	add := func(of made, calls []Call) {
		for k := range calls {
			of.Call, of.path = &calls[k], of.maker+"."+document.Item("calls", k)
			list = append(list, of)
		}
	}
	for i := range s.Services {
		v := &s.Services[i]
		add(made{from: v.Name, maker: document.Item("services", i), processes: v.Backends}, v.Calls)
	}
	for i := range s.Fleets {
		f := &s.Fleets[i]
		add(made{from: f.Name, maker: document.Item("fleets", i), processes: f.Clients, fleet: true}, f.Calls)
	}
	return list
}

// shares are those of all its calls.
func (f *Fleet) shares() float64 {
	sum := 0.0
	for i := range f.Calls {
		sum += f.Calls[i].share()
	}
	return sum
}

func (c *Call) share() float64 { return cmp.Or(c.Share, 1) }

// Capacity is how many requests, of calls whose work is 1, all backends together serve in a second while nothing is wrong
// with them.
func (s *Service) Capacity() float64 { return float64(s.Backends*s.Workers) / s.Time.Mean().Seconds() }

func (c *Call) connections() int { return max(c.Connections, 1) }

// Phase is a part of the time.
type Phase struct {
	Name   string
	Kind   Kind
	Length time.Duration
	Load   float64  // times the rates of the fleets
	LoadTo *float64 // at the end of the phase, evenly from Load; nil: as Load
	Faults []Fault
}

// Kind is what a phase counts for.
type Kind uint8

// The kinds of phases.
const (
	KindTrouble Kind = iota
	KindLead         // before the trouble: not counted, so that it does not hide what comes after
	KindAfter        // the trouble is over, and the time to recover begins
)

// Fault is what is wrong with backends of a service for a phase. Requests that arrive meanwhile meet it.
type Fault struct {
	Service  string
	Backends []int // from 0; none: all
	Down     bool  // they fail at once
	Hang     bool  // they never answer
	Flaky    float64
	Slow     *Slow
	Slower   float64 // their work takes so many times as long; 0: 1
	Workers  *int    // that are left
	Code     codes.Code
	Pushback *time.Duration // with a failure of Down or Flaky; negative: do not retry
}

// Slow is a slow tail: a part of the requests waits for something else when the work on them is done, which
// occupies no worker.
type Slow struct {
	Part float64
	By   *Distribution
}

// Length is that of all phases.
func (s *Scenario) Length() time.Duration { return s.until(KindLead, KindTrouble, KindAfter) }

// TroubleStart is when the lead-in is over, and the scenario begins to count.
func (s *Scenario) TroubleStart() time.Duration { return s.until(KindLead) }

// TroubleEnd is when the time to recover begins: at the end, if no phase is there for it.
func (s *Scenario) TroubleEnd() time.Duration { return s.until(KindLead, KindTrouble) }

// until is how long the phases at the beginning take that are of these kinds.
func (s *Scenario) until(kinds ...Kind) time.Duration {
	var at time.Duration
	for _, p := range s.Phases {
		if !slices.Contains(kinds, p.Kind) {
			break
		}
		at += p.Length
	}
	return at
}

// NoPolicy is the name that means one attempt in a [Variant]'s policies.
const NoPolicy = "NONE"

// policyOf is the policy that the calls of a fleet or a service follow in the variant.
func (v *Variant) policyOf(from, own string) string {
	if name, ok := v.Policies[from]; ok {
		return name
	}
	return cmp.Or(v.All, own)
}

// methodOf is the method that the calls of a fleet or a service have in the variant.
func (v *Variant) methodOf(from, own string) string {
	if _, named := v.Policies[from]; named || v.All == "" {
		return own
	}
	return cmp.Or(v.Method, own)
}

// With returns the scenario with one more variant, in which all calls that follow a policy follow this one
// instead: as calls of method ("/package.Service/Method"), or of their own methods if it is "". A scenario
// without variants gets one for how it was, too. The error says which call the policy has nothing to say of.
func (s *Scenario) With(name string, set *policy.Set, method string) (*Scenario, error) {
	more := *s
	more.Policies = maps.Clone(s.Policies)
	more.Policies[name] = &Policy{Set: decision.Compile(set), File: name}
	more.Variants = slices.Clone(s.Variants)
	if len(more.Variants) == 0 {
		more.Variants = []Variant{{Name: "as the scenario says"}}
	}
	v := Variant{Name: name, Policies: map[string]string{}, All: name, Method: method}
	check := func(from string, c *Call) error {
		if c.Policy == "" || c.Policy == NoPolicy {
			v.Policies[from] = NoPolicy
			return nil
		}
		return fits(name, set, cmp.Or(method, c.Method))
	}
	for _, c := range s.calls() {
		if err := check(c.from, c.Call); err != nil {
			return nil, err
		}
	}
	more.Variants = append(more.Variants, v)
	return &more, nil
}

// fits reports why a policy cannot be played for a method.
func fits(name string, set *policy.Set, method string) error {
	p := set.Lookup(method)
	if p == nil {
		return fmt.Errorf("%s: has no entry for the method %s of the scenario's calls; name one that it has", name, method)
	}
	if h := p.Spec().Hedge; h != nil && h.Quantile > 0 {
		return fmt.Errorf("%s: the entry for %s has a hedgingQuantile, which is not simulated; use a hedgingDelay", name, method)
	}
	return nil
}
