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

	"github.com/stagger-go/stagger/internal/methods"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// Scenario describes a simulation. [Load] reads one from a file, whose keys are these fields in camelCase.
type Scenario struct {
	Title    string             // one line
	About    string             // what it shows
	Seed     uint64             // of all random numbers; [Options] may replace it
	Bucket   time.Duration      // width of the time series; 0: a 200th of the whole time, at least 200 ms
	Recovery Recovery           // zero: 99 % of 250 ms
	Policies map[string]*Policy // by the names that calls use
	Variants []Variant          // to compare; none: the scenario as it is
	Services []Service
	Fleets   []Fleet
	Phases   []Phase
}

// Recovery defines when a fleet has recovered: in the first window of calls after the trouble with this success.
type Recovery struct {
	Success float64 // 0 to 1
	Window  time.Duration
}

// Variant is the scenario with other policies, or with more clients that share the same load.
type Variant struct {
	Name     string
	Policies map[string]string // by a fleet's or a service's name: the policy that its calls follow instead
	All      string            // the policy of all other calls; "": their own
	Clients  int               // of each fleet; 0: as the fleet says
	Method   string            // of all calls that follow All; "": their own
	Guard    *bool             // of every service; nil: as the service says
	Blind    bool              // calls learn nothing about their methods, like gRPC's own retries

	ServiceSeed uint64 // another number gives the services other random numbers; calls come at the same times
}

// Service is a group of equal backends.
type Service struct {
	Name      string
	Backends  int
	Workers   int // of each backend: requests that it works on in parallel
	Queue     int // requests that may wait at each backend
	Order     Order
	Time      *Distribution
	Refuse    codes.Code // a backend's answer when its queue is full
	Abandoned Abandoned
	Guard     bool    // it runs the chain guard: callers learn that a call below has given up
	Thrash    float64 // with a full queue, a worker takes this many times as long, and in proportion with a shorter one; 0: 1
	Connect   float64 // so much more work, in times of Time, is the first request of each process, and after the backend was down
	Cache     *Cache  // nil: none
	CoDel     *CoDel  // nil: requests wait until they are served
	Calls     []Call
}

// Cache answers a part of the requests without their work. It is a model of entries that are requested equally often and expire
// after TTL: a request finds its entry with the probability that it is there. It fills an entry only if its client still waits
// for it when its work is done, since a handler whose context has ended returns before it has anything to keep.
type Cache struct {
	Entries int
	TTL     time.Duration
	Hit     *Distribution // how long a worker takes for a request whose entry is there
}

// CoDel bounds how long requests wait: Interval, or Target while the queue was not empty for as long as Interval. The backend
// refuses those that have waited for longer.
type CoDel struct{ Target, Interval time.Duration }

// Order is the order in which a backend serves its queue.
type Order uint8

// The orders.
const (
	OrderFIFO Order = iota // the longest wait first
	OrderLIFO              // the newest first
)

// Abandoned is how a backend treats queued requests whose clients have left.
type Abandoned uint8

// The kinds.
const (
	AbandonedServe Abandoned = iota // it serves them like all others
	AbandonedDrop                   // it drops them
)

// Fleet is a group of equal clients.
type Fleet struct {
	Name     string
	Clients  int           // processes, each with budgets of its own
	Lifetime time.Duration // of each process, after which a new one takes its place, in turn; 0: until the end
	Rate     float64       // calls per second of all clients together, times the phase's load
	Calls    []Call        // a process makes all of them with the same budgets; chosen at random by their shares
}

// Call describes a kind of call.
type Call struct {
	Share       float64 // of a fleet's calls, in proportion to the others'; 0: 1
	Service     string
	Method      string // "/package.Service/Method", selects the policy entry
	Policy      string // a key of Policies; "": none, one attempt
	Deadline    time.Duration
	Work        float64 // in times of the service's time; 0: 1
	Connections int     // of each process; each goes round the backends; 0: 1
	Clients     int     // of a service: processes that share budgets; 0: one for each backend
	Attempts    int     // cap on the policies' maxAttempts; 0: the file's maxAttemptsLimit
	Delay       *Distribution
	Loss        float64 // part of the messages that are lost
	Limit       int     // attempts of each process that run at a time; others wait in the client; 0: no limit
}

// service returns a service by its name, or nil.
func (s *Scenario) service(name string) *Service {
	for i := range s.Services {
		if s.Services[i].Name == name {
			return &s.Services[i]
		}
	}
	return nil
}

// made is a call, and its maker: a service or a fleet.
type made struct {
	*Call

	from        string
	maker, path string // the fields of the maker and of the call
	fleet       bool
	processes   int // in the scenario
}

// calls returns the calls of services, then those of fleets.
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

// shares returns the sum of the shares of its calls.
func (f *Fleet) shares() float64 {
	sum := 0.0
	for i := range f.Calls {
		sum += f.Calls[i].share()
	}
	return sum
}

func (c *Call) share() float64 { return cmp.Or(c.Share, 1) }

// Capacity returns how many requests per second, of calls whose work is 1, all backends together serve without faults.
func (s *Service) Capacity() float64 { return float64(s.Backends*s.Workers) / s.Time.Mean().Seconds() }

func (c *Call) connections() int { return max(c.Connections, 1) }

// Phase is a period of the scenario.
type Phase struct {
	Name   string
	Kind   Kind
	Length time.Duration
	Load   float64 // times the rates of the fleets
	Faults []Fault
}

// Kind is the role of a phase.
type Kind uint8

// The kinds of phases.
const (
	KindTrouble Kind = iota
	KindLead         // before the trouble; not counted, so that it does not hide what follows
	KindAfter        // the time to recover
)

// Fault is a fault of a service's backends during a phase. It applies to requests that arrive in the phase.
type Fault struct {
	Service  string
	Backends []int   // from 0; none: all
	Method   string  // only requests of this method; "": all
	Down     bool    // they fail immediately
	Hang     bool    // they never answer
	Flaky    float64 // this part of the requests fails; a request that one such fault spares may meet the next
	AtOnce   bool    // failures of Flaky need no work
	Slow     *Slow
	Slower   float64 // factor of the time of their work; 0: 1
	Workers  *int    // remaining
	Flush    bool    // the cache is empty when the phase begins
	Code     codes.Code
	Pushback *time.Duration // in failures of Down or Flaky; negative: do not retry
}

// Slow is a slow tail: after their work, part of the requests wait for something else, without a worker.
type Slow struct {
	Part float64
	By   *Distribution
}

// Length returns the length of all phases.
func (s *Scenario) Length() time.Duration { return s.until(KindLead, KindTrouble, KindAfter) }

// TroubleStart returns when the lead-in ends, and counting begins.
func (s *Scenario) TroubleStart() time.Duration { return s.until(KindLead) }

// TroubleEnd returns when the time to recover begins: without such a phase, the end.
func (s *Scenario) TroubleEnd() time.Duration { return s.until(KindLead, KindTrouble) }

// until returns the length of the first phases of these kinds.
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

// NoPolicy is the name for "one attempt" in a [Variant]'s policies.
const NoPolicy = "NONE"

// policyOf returns the policy of a fleet's or a service's calls in the variant.
func (v *Variant) policyOf(from, own string) string {
	if name, ok := v.Policies[from]; ok {
		return name
	}
	return cmp.Or(v.All, own)
}

// methodOf returns the method of a fleet's or a service's calls in the variant.
func (v *Variant) methodOf(from, own string) string {
	if _, named := v.Policies[from]; named || v.All == "" {
		return own
	}
	return cmp.Or(v.Method, own)
}

// With returns the scenario with one more variant, in which all calls with a policy follow this one instead: as calls of
// method ("/package.Service/Method"), or of their own methods if it is "". A scenario without variants also gets one for its
// original state. The error names a call for which the policy has no entry.
func (s *Scenario) With(name string, set *policy.Set, method string) (*Scenario, error) {
	more := *s
	more.Policies = maps.Clone(s.Policies)
	more.Policies[name] = &Policy{Set: methods.Describe(set), File: name}
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

// fits returns why a policy cannot be played for a method, or nil.
func fits(name string, set *policy.Set, method string) error {
	p := set.Lookup(method)
	if p == nil {
		return fmt.Errorf("%s: has no entry for the method %s of the scenario's calls; name one that it has", name, method)
	}
	if h := compiled.Of(p).Hedge; h != nil && h.Quantile > 0 {
		return fmt.Errorf("%s: the entry for %s has a hedgingQuantile, which is not simulated; use a hedgingDelay", name, method)
	}
	return nil
}
