// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package storm

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "google.golang.org/grpc/balancer/leastrequest" // the policy least_request_experimental

	"github.com/stagger-go/stagger/elsewhere"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/sim"
	"github.com/stagger-go/stagger/internal/testkit"
)

// realistic are storms whose times are those of real services: with a spread, with a cache, with fast errors, and of a quiet client next to
// a busy one. The services have room for every retry, so those must help.
var realistic = []struct {
	file           string
	success, quiet float64 // at least; quiet: of the second fleet's calls
	perCall        float64 // at most
}{
	{file: "spread-one-fails", success: 0.985, perCall: 1.4},
	{file: "cache-one-fails", success: 0.985, perCall: 1.4},
	{file: "fast-errors-one-fails", success: 0.93, perCall: 1.4},
	{file: "spread-one-hangs", success: 0.97, perCall: 1.4},
	{file: "quiet-and-busy", success: 0.985, quiet: 0.985, perCall: 1.4},
}

// storm is an outage, the same for every client, with stagger's targets.
type storm struct {
	*sim.Scenario

	attemptTimeout time.Duration // of the clients that support it; 0: none
	hedgingDelay   time.Duration // of stagger's policy if that hedges
	process        uint64        // number of the process with these options, from 1
	below          float64       // how far stagger may be below no retries, in the grid; 0: that is not judged
	target         target
	ofMany         target // of stagger in many processes
	elsewhere      target // of stagger with retries elsewhere
	atOnce         target // of the same, with the first retry at once
	calm           bool   // admission should refuse nearly nothing
	leaf           string // the load balancing policy of all clients; "": round_robin
}

// pair has the targets of stagger in one process and in many.
type pair struct{ one, many target }

func both(t target) *pair { return &pair{t, t} }

func succeeds(success float64) target { return target{success: success} }

// table has all storms, with stagger's targets compared with its peers, in the grid, and with admission. A nil pair is not played.
// An empty target is only measured.
var table = []struct {
	file                   string
	peers, grid, admission *pair
	calm                   bool
}{
	{"blip", both(target{}), both(target{}), both(target{}), true},
	{"pulse", both(overload), &pair{one: kept}, both(succeeds(0.85)), false}, // 92.5 % from one process, 85.7 % in one play over 100 connections
	{"patient-pulse", both(overload), &pair{kept, ofMany}, both(target{share: 1}), false},
	{"random-failures", both(succeeds(0.999)), both(succeeds(0.999)), both(succeeds(0.999)), true},
	{"one-fails", both(succeeds(0.995)), both(succeeds(0.995)), both(succeeds(0.995)), true},
	{"one-hangs", both(succeeds(0.99)), &pair{one: succeeds(0.99)}, &pair{one: succeeds(0.99)}, true},
	{"outage", both(spends), both(spends), both(spends), true},
	{"slow-tail", both(target{}), both(succeeds(0.999)), both(succeeds(0.999)), true},
	{"chain-outage", both(outlasts), both(outlasts), nil, false},
	// Three hops send attempts in parallel to slow ones.
	{"chain-pulse", both(target{recovery: 2, share: 0.9}), &pair{one: kept}, &pair{one: target{share: 1}}, false},
	{"pulse-10s", nil, &pair{one: kept}, &pair{succeeds(0.75), succeeds(0.72)}, false},
	{"pulse-60s", nil, &pair{one: kept}, both(succeeds(0.66)), false},
	{"strong-pulse", nil, &pair{one: target{share: 0.98}}, &pair{one: target{share: 0.98}}, false},
	{"on-and-off", nil, &pair{one: target{share: 0.98}}, both(target{share: 1}), false},
	{"half-the-workers", nil, both(target{}), both(target{}), false},
	{"pulse-one-down", nil, both(target{}), both(target{}), false},
	{"all-slow", nil, both(target{success: 0.999, perCall: 1.05}), both(succeeds(0.999)), true},
	// Each of a hundred processes learns by itself that a server hangs, with a bucket of four: 96.5 to 97.1 %.
	{"one-hangs-busy", nil, &pair{succeeds(0.99), succeeds(0.96)}, &pair{one: succeeds(0.99)}, true},
	{"hedged-pulse", nil, &pair{one: target{recovery: 1.1, share: 0.95}}, nil, false}, // from 10 processes 71.1 %, without retries 73.9
	{"hedged-slow-tail", nil, both(succeeds(0.999)), nil, false},
	{"hedged-75", nil, both(succeeds(0.999)), nil, false},
	{"hedged-85", nil, both(succeeds(0.999)), nil, false},
	{"third-down", nil, both(target{share: 1}), nil, false},
	{"rolling-deploy", nil, &pair{one: target{share: 1}}, nil, false},
}

var (
	overload = target{recovery: 1.5, share: 0.9}
	kept     = target{recovery: 1.1, share: 0.98}
	ofMany   = target{recovery: 1.25, share: 0.95}
	spends   = target{perCall: 1.12}
	outlasts = target{success: 0.6, perCall: 1.4} // calls of 3 s wait for an answer while all servers of C fail for 3 s
)

// mostBelow is how far stagger may be below no retries in a storm, from any number of processes, but for those of farBelow. Its many full
// buckets cost as much: docs/evidence/storms.md lists the storms in which it is below at all.
const mostBelow = 0.08

var farBelow = map[string]float64{
	"pulse-one-down": 0.18, // the retries help those that come first, at the cost of the others
	"chain-pulse":    0.11, // from a hundred processes, as below
	"on-and-off":     0.11,
}

// The columns of the table.
const (
	withPeers = iota
	inGrid
	withAdmission
)

// storms returns the storms of a column whose titles match the pattern.
func storms(t *testing.T, column int, pattern string) (list []storm) {
	t.Helper()
	titles := regexp.MustCompile(pattern)
	for _, row := range table {
		targets := []*pair{row.peers, row.grid, row.admission}[column]
		if targets == nil {
			continue
		}
		if s := load(t, row.file); titles.MatchString(s.Title) {
			s.target, s.ofMany, s.calm = targets.one, targets.many, row.calm
			if column == inGrid {
				s.below = cmp.Or(farBelow[row.file], mostBelow)
			}
			list = append(list, s)
		}
	}
	return list
}

// elsewhereStorms are those in which some backends are worse than others, to measure the benefit of retries elsewhere.
func elsewhereStorms(t *testing.T) (list []storm) {
	t.Helper()
	const ms = time.Millisecond
	for _, s := range []struct {
		file, title, leaf         string
		target, elsewhere, atOnce target
	}{
		{
			"one-fails", "one fails, elsewhere", "",
			succeeds(0.995),
			target{success: 0.9995, p99: 125 * ms, p999: 140 * ms},
			target{success: 0.9995, p99: 75 * ms, p999: 90 * ms}, // from 100 connections 43 to 61 ms and 52 to 75, by the run; from one 29 and 32
		},
		{
			"one-hangs", "one hangs, elsewhere", "",
			succeeds(0.99),
			target{success: 0.9995, p99: 225 * ms, p999: 240 * ms},
			target{success: 0.9995, p99: 145 * ms, p999: 160 * ms},
		},
		{"one-fails", "one fails, least request", leastRequest, target{}, succeeds(0.999), succeeds(0.999)},
		{"two-fail", "two fail", "", target{}, target{more: true}, target{}},
	} {
		read := load(t, s.file)
		read.Title, read.leaf, read.target, read.elsewhere, read.atOnce = s.title, s.leaf, s.target, s.elsewhere, s.atOnce
		list = append(list, read)
	}
	return list
}

const leastRequest = "least_request_experimental"

// load reads a storm. The method of its users' calls has a policy with its attempt timeout.
func load(t *testing.T, name string) storm {
	t.Helper()
	s := testkit.Must(sim.Load("storms/" + name + ".yaml"))(t)
	call := &s.Fleets[0].Calls[0]
	p := s.Policies[call.Policy].Lookup(call.Method)
	read := storm{Scenario: s, attemptTimeout: p.PerAttemptTimeout()}
	if h := compiled.Of(p).Hedge; h != nil {
		read.hedgingDelay = h.HedgingDelay
	}
	return read
}

// targetOf returns the target of a client.
func (s storm) targetOf(c client) target {
	switch {
	case c.processes >= 100:
		return s.ofMany
	case c.retries == whereElsewhere:
		return s.elsewhere
	case c.retries == whereElsewhereAtOnce:
		return s.atOnce
	default:
		return s.target
	}
}

// balancing returns the storm's load balancing for a service config, on its own or inside package elsewhere's.
func (s storm) balancing(another bool) string {
	leaf := fmt.Sprintf(`[{%q: {}}]`, cmp.Or(s.leaf, "round_robin"))
	if another {
		return fmt.Sprintf(`[{%q: {"childPolicy": %s}}]`, elsewhere.Name, leaf)
	}
	return leaf
}

// last returns the service with the trouble; in a chain, the others call it.
func (s storm) last() *sim.Service { return &s.Services[len(s.Services)-1] }

// chain reports whether a call reaches several services.
func (s storm) chain() bool { return len(s.Services) > 1 }

func TestStorms(t *testing.T) {
	t.Parallel()
	files := testkit.Must(os.ReadDir("storms"))(t)
	if len(files) != len(table)+2+len(realistic) { // two-fail is only for retries elsewhere, quiet-client for lab/overload/storms.csv
		t.Errorf("%d files, %d storms; want each to be played", len(files), len(table)+2+len(realistic))
	}
	page := string(testkit.Must(os.ReadFile("../../docs/evidence/storms.md"))(t))
	for file, below := range farBelow {
		if want := fmt.Sprintf("- `%s`: %.0f points.\n", load(t, file).Title, 100*below); !strings.Contains(page, want) {
			t.Errorf("docs/evidence/storms.md does not say %q", want)
		}
	}
	for _, s := range storms(t, inGrid, "") {
		if queue := s.last().Queue; s.About == "" || queue != 75*s.last().Workers {
			t.Errorf("storm %q: a queue of %d; want 1.5 s of work, more than any call waits there, and a line that says what happens", s.Title, queue)
		}
	}
}

// Policies and peers have the same settings, and no budget but the default one, which the targets are for; storms differ only in the
// attempt timeout.
func TestPolicies(t *testing.T) {
	t.Parallel()
	set := testkit.Must(policiesOf(storm{}, wherePicked))(t)
	if c := compiled.OfSet(set); len(set.Warnings()) > 0 || len(c.Budgets) > 0 || c.RetryThrottling != nil ||
		set.Lookup("/stagger.outage.WarmUp/Connect") != nil {
		t.Errorf("warnings %v, config %+v; want neither warnings nor budgets, and no policy for calls that connect", set.Warnings(), c)
	}
	var first *spec.Retry
	for _, s := range storms(t, withPeers, "") {
		retry := *compiled.Of(set.Lookup(s.Fleets[0].Calls[0].Method)).Retry
		if b := retry.Backoff; retry.MaxAttempts != attempts || b.Initial != initialBackoff || b.Max != maxBackoff {
			t.Errorf("%s: %+v; want the settings of the peers", s.Title, retry)
		}
		retry.PerAttemptTimeout = 0
		if first == nil {
			first = &retry
		}
		if !reflect.DeepEqual(retry, *first) {
			t.Errorf("%s: %+v; want what the first storm has: %+v", s.Title, retry, *first)
		}
	}
	admitting := testkit.Must(policiesOf(storm{}, wherePicked, admission))(t)
	if slices.ContainsFunc(compiled.OfSet(admitting).Methods, func(m spec.MethodConfig) bool { return m.Admission != "REFUSE" }) {
		t.Error("an entry has no admission")
	}
}
