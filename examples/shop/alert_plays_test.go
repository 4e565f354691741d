// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var write = flag.Bool("write", false, "write the times to alert into README.md")

// A scenario is a client's metrics: an hour of calm, and then something happens. Three backends share the calls, of which most are
// GetOrder, which is idempotent, and the others CreateOrder, which isn't.
const (
	calm      = time.Hour
	played    = calm + 15*time.Minute
	scrape    = 30 * time.Second
	perSecond = 100
	get       = "acme.orders.v1.OrderService/GetOrder"
	create    = "acme.orders.v1.OrderService/CreateOrder"
	target    = "dns:///orders:50051"
)

// shares are the parts of the calls that are CreateOrder.
var shares = []float64{0.01, 0.02, 0.05, 0.14, 0.25}

var backends = []string{"10.0.0.1:7002", "10.0.0.2:7002", "10.0.0.3:7002"}

// kind is what happens to an attempt.
type kind struct {
	status string
	slow   bool
	helped bool // another attempt of GetOrder succeeds
	reason string
}

// The ends of attempts. While one backend is in trouble, another attempt of GetOrder helps, except after INTERNAL, which the policy
// doesn't list.
var (
	fine        = kind{status: "OK", reason: "succeeded"}
	hangs       = kind{"CANCELLED", true, true, "deadline_exceeded"} // in a chain
	unavailable = kind{"UNAVAILABLE", false, true, "not_idempotent"}
	internal    = kind{"INTERNAL", false, false, "non_retryable"}
	slow        = kind{"OK", true, true, "succeeded"}
	lost        = kind{"DEADLINE_EXCEEDED", true, false, "deadline_exceeded"}
	refused     = kind{"UNAVAILABLE", false, false, "budget_exhausted"}
	exhausted   = kind{"RESOURCE_EXHAUSTED", false, false, "overloaded"}
)

// part is a part of a backend's attempts that end so, at a time.
type part struct {
	kind  kind
	share float64
}

// scenario says how attempts at a backend end, and by which address it is known.
type scenario struct {
	name      string
	perSecond float64
	share     float64 // of CreateOrder
	at        func(backend int, since time.Duration) (address string, parts []part)
}

// one returns a trouble of the second backend, and everywhere one of all.
func one(k kind) func(int, time.Duration) (string, []part) {
	return func(backend int, since time.Duration) (string, []part) {
		if backend == 1 && since >= 0 {
			return backends[backend], []part{{k, 1}}
		}
		return backends[backend], nil
	}
}

func everywhere(k kind) func(int, time.Duration) (string, []part) {
	return func(backend int, since time.Duration) (string, []part) {
		if since >= 0 {
			return backends[backend], []part{{k, 1}}
		}
		return backends[backend], nil
	}
}

// troubles call an operator. alone says that one backend is the cause.
var troubles = []struct {
	name  string
	alone bool
	fails bool   // calls fail
	says  string // the alert
	at    func(int, time.Duration) (string, []part)
}{
	{"one of three backends hangs", true, true, "most slow, with CANCELLED", one(hangs)},
	{"one fails with UNAVAILABLE", true, true, "most with UNAVAILABLE", one(unavailable)},
	{"one fails with INTERNAL", true, true, "most with INTERNAL", one(internal)},
	{"one is ten times slower", true, false, "most slow, with CANCELLED", one(slow)},
	{"all hang", false, true, "most with DEADLINE_EXCEEDED (deadline_exceeded)", everywhere(lost)},
	{"all fail with UNAVAILABLE", false, true, "most with UNAVAILABLE (budget_exhausted)", everywhere(refused)},
}

// quiet are plays that call nobody.
var quiet = []scenario{
	// Each pod refuses calls for 15 s, one minute after the other, and comes back at another address.
	{"a rolling restart", perSecond, 0.14, func(backend int, since time.Duration) (string, []part) {
		ends := time.Duration(backend+1) * time.Minute
		switch {
		case since >= ends:
			return strings.Replace(backends[backend], "10.0.0.", "10.0.1.", 1), nil
		case since >= ends-scrape:
			return backends[backend], []part{{unavailable, 0.5}}
		}
		return backends[backend], nil
	}},
	// For ten minutes, all backends are slow, and refuse a part of the calls.
	{"an overload", perSecond, 0.14, func(backend int, since time.Duration) (string, []part) {
		if since >= 0 && since < 10*time.Minute {
			return backends[backend], []part{{slow, 0.4}, {exhausted, 0.05}, {lost, 0.01}}
		}
		return backends[backend], nil
	}},
	// A call a minute, of which one in ten fails, as it has all evening.
	{"a quiet night", 1.0 / 60, 0.5, func(backend int, _ time.Duration) (string, []part) {
		return backends[backend], []part{{internal, 0.1}}
	}},
	// All pods are new, one after the other, and their first minute is slow: caches are cold.
	{"a deploy", perSecond, 0.14, func(backend int, since time.Duration) (string, []part) {
		began := time.Duration(backend) * 30 * time.Second
		address := strings.Replace(backends[backend], "10.0.0.", "10.0.2.", 1)
		switch {
		case since < began:
			return backends[backend], nil
		case since < began+time.Minute:
			return address, []part{{slow, 0.8}, {lost, 0.02}}
		}
		return address, nil
	}},
}

// series are counters by name and labels, at each scrape.
type series map[string][]float64

func (s series) add(step int, n float64, name string, labels ...string) {
	var text strings.Builder
	for i := 0; i < len(labels); i += 2 {
		fmt.Fprintf(&text, ", %s=%q", labels[i], labels[i+1])
	}
	key := fmt.Sprintf("%s{job=\"shop\", grpc_target=%q%s}", name, target, text.String())
	if s[key] == nil {
		s[key] = make([]float64, played/scrape)
	}
	s[key][step] += n
}

// run returns the series of a play.
func (p *scenario) run() series {
	s := series{}
	for step := range int(played / scrape) {
		since := time.Duration(step)*scrape - calm
		for backend := range backends {
			address, parts := p.at(backend, since)
			well := 1.0
			for _, x := range parts {
				p.attempts(s, step, address, x.kind, x.share)
				well -= x.share
			}
			p.attempts(s, step, address, fine, well)
		}
	}
	return s
}

// attempts counts a part of the attempts at a backend in a scrape interval, and the calls that end with them. Another attempt of a call
// that needs one counts as a success elsewhere.
func (p *scenario) attempts(s series, step int, address string, k kind, part float64) {
	all := p.perSecond * scrape.Seconds() * part / float64(len(backends))
	for method, share := range map[string]float64{get: 1 - p.share, create: p.share} {
		if share == 0 || part == 0 {
			continue
		}
		n := all * share
		call := k
		if method == get && k.helped {
			call = fine
			s.add(step, n, "stagger_client_attempts_total", "stagger_backend", backends[0], "grpc_status", "OK", "slow", "false")
		}
		attempt := k
		if method == get && k.slow && k.helped {
			attempt.status = "CANCELLED" // it has lost
		}
		slow := strconv.FormatBool(k.slow)
		s.add(step, n, "stagger_client_attempts_total", "stagger_backend", address, "grpc_status", attempt.status, "slow", slow)
		s.add(step, n, "stagger_client_calls_total", "grpc_method", method, "grpc_status", call.status, "reason", call.reason, "slow", slow)
	}
}

// input returns the play's series in promtool's notation. A counter begins with its first event.
func (p *scenario) input() string {
	var text strings.Builder
	all := p.run()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "      - {series: '%s', values: '", key)
		sum := 0.0
		for _, n := range all[key] {
			sum += n
			if sum == 0 {
				text.WriteString("_ ")
			} else {
				fmt.Fprintf(&text, "%.0f ", math.Floor(sum))
			}
		}
		text.WriteString("'}\n")
	}
	return text.String()
}

// page is an alert of severity critical: when it began to fire, since the trouble, and what it says.
type page struct {
	alert, text, url string
	after            time.Duration
}

// pages has promtool play the plays, and returns the critical alerts of each, the first ones first.
func pages(t *testing.T, plays []scenario) map[string][]page {
	t.Helper()
	rulesFile, err := filepath.Abs("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	fmt.Fprintf(&file, "rule_files: [%s]\nevaluation_interval: %ds\ntests:\n", rulesFile, int(scrape.Seconds()))
	for i := range plays {
		p := &plays[i]
		fmt.Fprintf(&file, "  - name: %q\n    interval: %ds\n    input_series:\n%s", p.name, int(scrape.Seconds()), p.input())
		first := fmt.Sprintf(`min_over_time(timestamp(ALERTS{alertstate="firing",severity="critical"})[%ds:%ds])`, int(played.Seconds()), int(scrape.Seconds()))
		fmt.Fprintf(&file, "    promql_expr_test:\n      - {expr: 'label_replace(%s, \"play\", %q, \"\", \"\")', eval_time: %ds}\n",
			first, p.name, int(played.Seconds()))
	}
	found := map[string][]page{}
	// promtool prints what it doesn't expect: here, everything.
	fired := regexp.MustCompile(`\{alertname="(\w+)"[^}]*?play="([^"]+)"[^}]*\} ([\d.E+]+)`)
	for _, m := range fired.FindAllStringSubmatch(promtool(t, file.String()), -1) {
		seconds, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(m[0], err)
		}
		found[m[2]] = append(found[m[2]], page{alert: m[1], after: time.Duration(seconds)*time.Second - calm})
	}
	for _, list := range found {
		slices.SortFunc(list, func(a, b page) int { return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.alert, b.alert)) })
	}
	return found
}

// promtool tests rules by a file, and returns what it prints.
func promtool(t *testing.T, file string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plays.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", path).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "FAILED") {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// told returns the text of an alert of a play, and its link, a minute after it has fired.
func told(t *testing.T, p *scenario, of page) page {
	t.Helper()
	rulesFile, err := filepath.Abs("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const file = "rule_files: [%s]\nevaluation_interval: %ds\ntests:\n  - interval: %[2]ds\n    input_series:\n%s" +
		"    alert_rule_test:\n      - {eval_time: %ds, alertname: %s}\n"
	later := calm + of.after + time.Minute // promtool may evaluate a group of rules later than another
	out := promtool(t, fmt.Sprintf(file, rulesFile, int(scrape.Seconds()), p.input(), int(later.Seconds()), of.alert))
	m := regexp.MustCompile(`Annotations:\{runbook_url="([^"]+)", summary="((?:[^"\\]|\\.)+)"\}`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("%s has no text: %s", of.alert, out)
	}
	of.url, of.text = m[1], m[2]
	return of
}

// An hour of calm, and then a trouble. Whatever part of the calls can't be retried, a critical alert names the cause within ten minutes.
// README.md has the times; -write writes them.
func TestAlertPlays(t *testing.T) {
	required(t)
	t.Parallel()
	var plays []scenario
	for _, trouble := range troubles {
		for _, share := range shares {
			plays = append(plays, scenario{fmt.Sprint(trouble.name, share), perSecond, share, trouble.at})
		}
	}
	found := pages(t, plays)
	table := strings.Builder{}
	table.WriteString("| fault | 1 % CreateOrder | 2 % | 5 % | 14 % | 25 % |\n| --- | ---:| ---:| ---:| ---:| ---:|\n")
	for _, trouble := range troubles {
		fmt.Fprintf(&table, "| %s |", trouble.name)
		for _, share := range shares {
			list := found[fmt.Sprint(trouble.name, share)]
			t.Logf("%s, CreateOrder is %v %%: %+v", trouble.name, 100*share, list)
			if len(list) == 0 || list[0].after < 0 || list[0].after > 10*time.Minute || (list[0].alert == "StaggerBackendFails") != trouble.alone {
				t.Errorf("%s, CreateOrder is %v %% of the calls: %+v", trouble.name, 100*share, list)
				continue
			}
			fmt.Fprintf(&table, " %v min |", list[0].after.Minutes())
			// The alert by method comes as well, without those by backend.
			if byMethod := slices.IndexFunc(list, func(p page) bool { return p.alert == "StaggerMethodFails" }); trouble.fails && byMethod < 0 {
				t.Errorf("%s, CreateOrder is %v %% of the calls: no StaggerMethodFails within %v", trouble.name, 100*share, played-calm)
			} else if trouble.fails && list[byMethod].after > 10*time.Minute {
				t.Errorf("%s, CreateOrder is %v %% of the calls: %+v", trouble.name, 100*share, list)
			}
		}
		table.WriteString("\n")
	}
	wantTable(t, table.String())
}

// Restarts, deploys, an overload of minutes, and a night with few calls call nobody.
func TestAlertPlays_Quiet(t *testing.T) {
	required(t)
	t.Parallel()
	for name, list := range pages(t, quiet) {
		t.Errorf("%s: %+v", name, list)
	}
}

// An operator with nothing but the alert gets to the remedy: the text names the backend and the code, its link leads to an entry of the
// runbook, and the entry has the command.
func TestAlertPlays_Remedy(t *testing.T) {
	required(t)
	t.Parallel()
	for _, trouble := range troubles {
		t.Run(trouble.name, func(t *testing.T) {
			t.Parallel()
			p := scenario{trouble.name, perSecond, 0.05, trouble.at}
			list := pages(t, []scenario{p})[p.name]
			if len(list) == 0 {
				t.Fatal("no alert")
			}
			first := told(t, &p, list[0])
			t.Log(first.text)
			where, command := target, "kubectl rollout undo"
			if trouble.alone {
				where, command = "the backend "+backends[1]+" of "+target, "kubectl delete pod"
			}
			if !strings.Contains(first.text, where) || !strings.Contains(first.text, trouble.says) {
				t.Errorf("the alert says %q; want %q and %q", first.text, where, trouble.says)
			}
			_, anchor, _ := strings.Cut(first.url, "docs/runbook.md#")
			entry := runbookEntry(t, anchor)
			if !strings.Contains(entry, command) {
				t.Errorf("the entry %s has no %q:\n%s", anchor, command, entry)
			}
			// From each alert, the backends are one link away.
			if !trouble.alone && !strings.Contains(entry, "](#a-backend-fails-hangs-or-is-slow)") {
				t.Errorf("%s does not lead to the backends", anchor)
			}
		})
	}
}

// runbookEntry returns the entry of docs/runbook.md with an anchor.
func runbookEntry(t *testing.T, anchor string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	notInAnchors := regexp.MustCompile("[^a-z0-9_ -]")
	for _, m := range regexp.MustCompile(`(?m)^##+ (.+)$`).FindAllStringSubmatchIndex(string(text), -1) {
		title := strings.ToLower(string(text[m[2]:m[3]]))
		if strings.ReplaceAll(notInAnchors.ReplaceAllString(title, ""), " ", "-") != anchor {
			continue
		}
		entry, _, _ := strings.Cut(string(text[m[3]:]), "\n## ")
		entry, _, _ = strings.Cut(entry, "\n### ")
		return entry
	}
	t.Fatalf("docs/runbook.md has no entry %q", anchor)
	return ""
}

// wantTable compares the times on the page.
func wantTable(t *testing.T, want string) {
	t.Helper()
	const path, begin, end = "README.md", "<!-- examples/shop: times to alert -->\n", "<!-- /examples/shop -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := strings.Cut(string(text), begin)
	got, tail, ends := strings.Cut(rest, end)
	switch {
	case !begins || !ends:
		t.Errorf("%s has no place for the times", path)
	case got == want:
	case *write:
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o600); err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("%s: want\n%s", path, want)
	}
}
