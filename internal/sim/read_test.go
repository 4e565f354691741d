// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/testkit"
)

const retryFile = `methodConfig: [{name: [{service: a.B, method: C}], retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}}]`

const quantileFile = `methodConfig: [{name: [{service: a.B, method: C}], hedgingPolicy: {maxAttempts: 3, hedgingDelay: 0.1s, hedgingQuantile: {quantile: 0.95}}}]`

// whole is a scenario with every key.
const whole = `title: everything
about: every key
seed: 7
bucket: 500ms
recovery: {success: 0.95, window: 1s}
policies: {retry: retry.yaml, own: {methodConfig: [{name: [{service: a.B}], timeout: 1.5s}, {name: [{service: a.C}], hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s}}]}}
services:
  - name: front
    backends: 2
    workers: 3
    time: {normal: {mean: 2ms, deviation: 1ms}}
    queue: 10
    refuse: UNAVAILABLE
    abandoned: DROP
    order: LIFO
    guard: false
    thrash: 2
    connect: 5
    cache: {entries: 100, ttl: 10s, hit: 1ms}
    codel: {target: 5ms, interval: 100ms}
    calls: [{service: back, method: /a.B/C, policy: retry, deadline: 1s, connections: 2, attempts: 2, delay: {normal: {mean: 2ms, deviation: 1ms}}, loss: 0.01, limit: 8, clients: 1}]
  - {name: back, time: {lognormal: {median: 5ms, p99: 50ms}}}
fleets:
  - name: users
    clients: 10
    rate: 12.5
    calls: {service: front, method: /a.B/C, policy: retry, deadline: 2s}
  - name: robots
    rate: 10
    calls: [{service: back, deadline: 1s, delay: {bimodal: {usual: {fixed: 2s}, slow: {exponential: 1s}, part: 0.25}}}, {service: front, deadline: 3s, share: 2.5, work: 5}]
phases:
  - {name: calm, kind: LEAD, length: 5s, load: 0.5}
  - name: trouble
    length: 10s
    faults:
      - {service: back, backends: [0], down: true, code: 10, pushback: STOP}
      - {service: front, flaky: 0.5, slow: {part: 0.1, by: 1s}, slower: 2, workers: 1, pushback: 100ms}
      - {service: front, hang: true}
      - {service: front, method: /a.B/C, flaky: 0.1, atOnce: true}
      - {service: front, flush: true}
  - {name: short, length: 100ms, faults: [{service: front, slower: 2}]}
  - {name: after, kind: AFTER, length: 5s}
variants:
  - {name: none, policy: NONE, clients: 3, guard: true}
  - {name: front alone, policies: {front: retry, users: NONE}, serviceSeed: 3}
`

func parse(text string) (*Scenario, error) {
	return Parse("x.yaml", []byte(text), func(name string) ([]byte, error) {
		switch name {
		case "retry.yaml":
			return []byte(retryFile), nil
		case "quantile.yaml":
			return []byte(quantileFile), nil
		case "bad.yaml":
			return []byte("methodConfig: 7"), nil
		default:
			return nil, fs.ErrNotExist
		}
	})
}

// Every key is read.
func TestParse(t *testing.T) {
	t.Parallel()
	s := testkit.Must(parse(whole))(t)
	call, trouble := s.Services[0].Calls[0], s.Phases[1].Faults
	for what, ok := range map[string]bool{
		"head":    s.Title == "everything" && s.About == "every key" && s.Seed == 7 && s.Bucket == 500*time.Millisecond && s.Recovery == Recovery{0.95, time.Second},
		"service": s.Services[0].Backends == 2 && s.Services[0].Workers == 3 && s.Services[0].Queue == 10 && s.Services[0].Refuse == codes.Unavailable,
		"kinds":   s.Services[0].Abandoned == AbandonedDrop && s.Services[0].Order == OrderLIFO && s.Services[1].Order == OrderFIFO && !s.Services[0].Guard && s.Services[1].Guard && s.Services[1].Refuse == codes.ResourceExhausted,
		"shapes":  *s.Services[0].Time == Distribution{Shape: ShapeNormal, A: 2e6, B: 1e6} && *s.Services[1].Time == Distribution{Shape: ShapeLogNormal, A: 5e6, B: 50e6} && *call.Delay == Distribution{Shape: ShapeNormal, A: 2e6, B: 1e6},
		"loops":   s.Services[0].Thrash == 2 && s.Services[0].Connect == 5 && *s.Services[0].CoDel == CoDel{5e6, 1e8} && s.Services[0].Cache.Entries == 100 && s.Services[0].Cache.TTL == 10*time.Second && *s.Services[0].Cache.Hit == Distribution{A: 1e6} && s.Services[1].Cache == nil && call.Limit == 8,
		"method":  trouble[3].Method == "/a.B/C" && trouble[3].AtOnce && trouble[4].Flush,
		"call":    call.Service == "back" && call.Policy == "retry" && call.Deadline == time.Second && call.Connections == 2 && call.Attempts == 2 && call.Loss == 0.01 && call.Clients == 1,
		"fleets":  s.Fleets[0].Clients == 10 && s.Fleets[0].Rate == 12.5 && s.Fleets[1].Calls[0].Delay.Shape == ShapeBimodal && s.Fleets[1].Calls[0].Delay.Part == 0.25 && *s.Fleets[1].Calls[0].Delay.Usual == Distribution{A: 2e9} && *s.Fleets[1].Calls[0].Delay.Slow == Distribution{Shape: ShapeExponential, A: time.Second} && s.Fleets[1].Clients == 1 && len(s.Fleets[0].Calls) == 1 && s.Fleets[1].Calls[0].Share == 1 && s.Fleets[1].Calls[1].Share == 2.5 && s.Fleets[1].Calls[1].Service == "front" && s.Fleets[1].Calls[0].Work == 1 && s.Fleets[1].Calls[1].Work == 5,
		"phases":  s.Phases[0].Kind == KindLead && s.Phases[0].Load == 0.5 && s.Phases[1].Load == 1 && s.Phases[2].Faults[0].Slower == 2 && s.Phases[3].Kind == KindAfter && s.Length() == 20100*time.Millisecond,
		"down":    trouble[0].Down && trouble[0].Backends[0] == 0 && trouble[0].Code == codes.Aborted && *trouble[0].Pushback < 0,
		"mixed":   trouble[1].Flaky == 0.5 && trouble[1].Slow.Part == 0.1 && trouble[1].Slower == 2 && *trouble[1].Workers == 1 && *trouble[1].Pushback == 1e8 && trouble[1].Code == codes.Unavailable,
		"own":     compiled.Of(s.Policies["own"].Lookup("/a.B/X")).Timeout == 1500*time.Millisecond && s.Policies["own"].File == "" && s.Policies["retry"].File == "retry.yaml",
		"variant": s.Variants[0].All == NoPolicy && s.Variants[0].Clients == 3 && *s.Variants[0].Guard && s.Variants[1].Policies["front"] == "retry" && s.Variants[1].Guard == nil && s.Variants[1].ServiceSeed == 3,
	} {
		if !ok {
			t.Errorf("%s: read wrongly: %+v", what, s)
		}
	}
	if _, err := s.Run(t.Context(), Options{}); err != nil {
		t.Error(err)
	}
}

// Each mistake is one line of the file above, in the place of another.
// Errors name place, value and what is right.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ old, fresh, want string }{
		{"seed: 7", "seed: -1", "x.yaml:3:7: seed: -1: must be a whole number, 1 to 2147483647"},
		{"seed: 7", "seeds: 7", "x.yaml:3:1: seeds: unknown key; did you mean seed?"},
		{"seed: 7", "seed: \"7\"", `x.yaml:3:7: seed: "7": must be a whole number, 1 to 2147483647`},
		{"seed: 7", "luck: 7", "x.yaml:3:1: luck: unknown key; must be title, about, seed, recovery, policies, services, fleets, variants, phases or bucket"},
		{"seed: 7", "seed: 7\nseed: 8", "x.yaml:4:1: seed: is given twice, first at line 3, column 1; keep one"},
		{"seed: 7", "seed: [", "x.yaml:5:9: is not YAML: while parsing a flow sequence: did not find expected ',' or ']'; see line 3, column 7"},
		{"bucket: 500ms", "bucket: 500", `x.yaml:4:9: bucket: 500: must be a time with its unit, 1ms to 1h0m0s: "250ms"`},
		{"bucket: 500ms", "bucket: 1h", "x.yaml:4:9: bucket: 1h: is longer than all phases together, 20.1s"},
		{"retry.yaml", "none.yaml", "x.yaml:6:19: policies.retry: none.yaml: cannot be read: file does not exist"},
		{"retry.yaml", "bad.yaml", "bad.yaml:1:15: methodConfig: 7: must be a list"},
		{"retry.yaml", "quantile.yaml", "x.yaml:21:53: services[0].calls[0].policy: retry: has a hedgingQuantile, which is not simulated; use a hedgingDelay"},
		{"timeout: 1.5s", "timeout: 1.5", `x.yaml:6:86: policies.own.methodConfig[0].timeout: 1.5: must be in seconds, with the unit: "1.5s"`},
		{"timeout: 1.5s", "timeouts: 1.5s", "x.yaml:6:87: policies.own.methodConfig[0].timeouts: 1.5s: unknown key; did you mean timeout?"},
		{"hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.1s}", "hedgingPolicy: {}", "x.yaml:6:133: policies.own.methodConfig[1].hedgingPolicy.maxAttempts: is required; must be"},
		{"own: {", "NONE: {", "policies.NONE: means one attempt; choose another name"},
		{"backends: 2", "backends: two", "x.yaml:9:15: services[0].backends: two: must be a whole number, 1 to 100000"},
		{"time: {normal: {mean: 2ms, deviation: 1ms}}\n", "time: {pareto: 1ms}\n", "x.yaml:11:12: services[0].time.pareto: unknown key; must be fixed, exponential, normal, lognormal or bimodal"},
		{"time: {normal: {mean: 2ms, deviation: 1ms}}\n", "time: {}\n", `x.yaml:11:11: services[0].time: must be a time such as "20ms", or one of fixed, exponential, normal, lognormal and bimodal`},
		{"{exponential: 1s}, part", "{exponential: 1}, part", `fleets[1].calls[0].delay.bimodal.slow.exponential: 1: must be a time with its unit`},
		{"slow: {exponential: 1s}, ", "", "fleets[1].calls[0].delay.bimodal.slow: is required; a bimodal time is {usual: 10ms, slow: 200ms, part: 0.2}"},
		{"part: 0.25", "part: 2", "fleets[1].calls[0].delay.bimodal.part: 2: must be a number, more than 0 and at most 1"},
		{"refuse: UNAVAILABLE", "refuse: OK", "x.yaml:13:13: services[0].refuse: OK: " +
			"must be a status code by its name such as UNAVAILABLE, or by its number, 1 to 16"},
		{"refuse: UNAVAILABLE", "refuse: 17", "x.yaml:13:13: services[0].refuse: 17: must be a status code by its name"},
		{"refuse: UNAVAILABLE", "refuse: [UNAVAILABLE]", "x.yaml:13:13: services[0].refuse: must be a status code by its name"},
		{"abandoned: DROP", "abandoned: KEEP", "x.yaml:14:16: services[0].abandoned: KEEP: must be SERVE or DROP"},
		{"order: LIFO", "order: RANDOM", "x.yaml:15:12: services[0].order: RANDOM: must be FIFO or LIFO"},
		{"guard: false", "guard: no", "x.yaml:16:12: services[0].guard: no: must be true or false"},
		{"loss: 0.01", "loss: 2", "x.yaml:21:155: services[0].calls[0].loss: 2: must be a number, 0 to 1"},
		{"{service: back, method", "{service: rear, method", "x.yaml:21:23: services[0].calls[0].service: rear: no service has that name; must be front or back"},
		{"method: /a.B/C, policy: retry, deadline: 1s", "method: /a.B/D, policy: retry, deadline: 1s", `x.yaml:21:53: services[0].calls[0].policy: retry: has no entry for the method "/a.B/D" of the calls to back; set their method to one that it has`},
		{"policy: retry, deadline: 1s", "policy: other, deadline: 1s", "x.yaml:21:53: services[0].calls[0].policy: other: no policy has that name; name its file under policies, or write NONE for one attempt"},
		{"{name: none, policy: NONE", "{name: front alone, policy: NONE", "variants[1].name: front alone: is given twice; two variants have it, and each needs its own"},
		{"{name: back, time", "{name: front, time", "services[1].name: front: is given twice; services and fleets need different names"},
		{"{name: back, time: {lognormal: {median: 5ms, p99: 50ms}}}", "{name: back}", "x.yaml:22:5: services[1].time: is required; must be how long a worker needs for a request, more than 0s on average"},
		{"{name: back, time: {lognormal: {median: 5ms, p99: 50ms}}}", "{name: back, time: 1ms, calls: [{service: front}]}", "x.yaml:21:12: services[0].calls: lead back to front; calls must not go in circles"},
		{"rate: 12.5", "rate: 0", "x.yaml:26:11: fleets[0].rate: 0: must be a number, more than 0 and at most 1e+08"},
		{"{service: back, deadline: 1s,", "{service: back,", `fleets[1].calls[0].deadline: is required; must be a time such as "1s": calls without a deadline are not simulated`},
		{"{service: front, deadline: 3s", "{service: fronts, deadline: 3s", "fleets[1].calls[1].service: fronts: no service has that name; must be front or back"},
		{"work: 5", "work: 0", "fleets[1].calls[1].work: 0: must be a number, more than 0 and at most 1e+06"},
		{"share: 2.5", "share: 0", "fleets[1].calls[1].share: 0: must be a number, more than 0 and at most 1e+06"},
		{"    calls: [{service: back, deadline: 1s, delay: {bimodal: {usual: {fixed: 2s}, slow: {exponential: 1s}, part: 0.25}}}, {service: front, deadline: 3s, share: 2.5, work: 5}]", "    calls: []", "fleets[1].calls: must name a service and a deadline"},
		{"kind: LEAD", "kind: AFTER", "phases[1]: is in the wrong place: LEAD comes first, then TROUBLE, then AFTER"},
		{"{service: front, slower: 2}", "{service: front, slower: 2, backends: [7]}", "phases[2].faults[0].backends: 7: must be less than the 2 backends of front"},
		{"{name: short,", "{name: short, kind: LEAD,", "phases[2]: is in the wrong place: LEAD comes first, then TROUBLE, then AFTER"},
		{"length: 10s", "len: 10s", `phases[1].length: is required; must be a time such as "10s"`},
		{"backends: [0], down: true", "backends: [1], down: true", "phases[1].faults[0].backends: 1: must be less than the 1 backends of back, counted from 0"},
		{"backends: [0], down: true", "backends: [x], down: true", "phases[1].faults[0].backends[0]: x: must be a backend by its number, from 0, each once"},
		{"hang: true", "hang: false", "phases[1].faults[2]: has no trouble; must have down, hang, flaky, slow, slower, workers or flush"},
		{"cache: {entries: 100, ttl: 10s, hit: 1ms}", "cache: {entries: 100, ttl: 10s}", "services[0].cache.hit: is required; a cache is {entries: 1000, ttl: 10s, hit: 1ms}"},
		{"cache: {entries: 100, ttl: 10s, hit: 1ms}", "guard: false", "services[0].guard: is given twice"},
		{"    cache: {entries: 100, ttl: 10s, hit: 1ms}\n", "", "phases[1].faults[4].flush: true: front has no cache"},
		{"thrash: 2", "thrash: 0", "services[0].thrash: 0: must be a number, more than 0 and at most 1e+06"},
		{"codel: {target: 5ms, interval: 100ms}", "codel: {target: 5ms}", `services[0].codel.interval: is required; must be a time such as "100ms"`},
		{"{service: front, method: /a.B/C, flaky", "{service: back, method: /a.B/D, flaky", "phases[1].faults[3].method: /a.B/D: no call to back has that method"},
		{"method: /a.B/C, flaky: 0.1, atOnce: true", "method: /a.B/C, hang: true, atOnce: true", "phases[1].faults[3].atOnce: true: is for the failures of flaky, which is missing"},
		{"{service: front, flush: true}", "{service: front, flush: true, method: /a.B/C}", "phases[1].faults[4].method: /a.B/C: is for faults of requests; workers and flush are of a whole backend"},
		{"serviceSeed: 3", "serviceSeed: -3", "variants[1].serviceSeed: -3: must be a whole number, 0 to 2147483647"},
		{"limit: 8", "limit: 0", "services[0].calls[0].limit: 0: must be a whole number, 1 to 1000000"},
		{"workers: 1,", "workers: 4,", "phases[1].faults[1].workers: 4: must be at most the 3 workers of each backend of front"},
		{"{front: retry, users: NONE}", "{front: retry, user: NONE}", "variants[1].policies.user: NONE: no fleet and no service has that name"},
		{"{name: none, policy: NONE", "{name: none, policy: some", "variants[0].policy: some: no policy has that name"},
	} {
		text := strings.Replace(whole, row.old, row.fresh, 1)
		if text == whole {
			t.Fatalf("%q is not in the file", row.old)
		}
		_, err := parse(text)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: error\n%v\nwant\n%s", row.fresh, err, row.want)
		}
	}
}

// One mistake makes one message.
func TestParse_OneMessage(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	testkit.EachMistake(t, whole, func(what, text string) {
		if _, err := parse(text); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n%v", what, err)
		}
	})
}

// Invalid scenarios are refused.
func TestParseOther(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":               "x.yaml:1:1: is empty; a scenario has keys such as services",
		"7":              "x.yaml:1:1: must be a map of keys such as services",
		"a: 1\n---\nb: ": "x.yaml:2:1: a second document begins here; a scenario has only one",
		"title: x":       "x.yaml:1:1: services: is required; must have at least one",
		"title: x\nphases: [{name: now, length: 10ms}]": "x.yaml:2:9: phases: last 10ms together; must be at least as long as a bucket, 200ms",

		strings.Repeat("#", 1<<20+1): "x.yaml: is larger than 1048576 bytes (1 MiB)",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error %v; want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add(modest)
	f.Add("services: [{name: a, time: {normal: {mean: 1ms, deviation: -1ms}}}]")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse(text)
		if (s == nil) != (err != nil) {
			t.Errorf("scenario %v, error %v", s, err)
		}
	})
}

// The scenario that cmd/stagger/scenarios/README.md shows can be played with a policy file next to it.
func TestParse_Page(t *testing.T) {
	t.Parallel()
	page := string(testkit.Must(os.ReadFile("../../cmd/stagger/scenarios/README.md"))(t))
	_, scenario, _ := strings.Cut(page, "```yaml scenario\n")
	scenario, _, found := strings.Cut(scenario, "```\n")
	file := strings.Replace(retryFile, "service: a.B, method: C", "service: acme.shop.v1.Shop, method: Get", 1)
	s, err := Parse("my.yaml", []byte(scenario), func(string) ([]byte, error) { return []byte(file), nil })
	if err != nil || !found || s.Title != "one backend of four fails" {
		t.Error(s, err)
	}
}
