// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// `make ops` runs this file with a real Prometheus, in real time. STAGGER_PROMETHEUS enables it.
func required(t *testing.T) {
	t.Helper()
	if os.Getenv("STAGGER_PROMETHEUS") == "" {
		t.Skip("a real Prometheus takes half a minute; `make ops` runs it")
	}
}

// Prometheus scrapes the shop during its outages. Nearly every query of the dashboard, and every metric of the alerts returns data,
// every rule can be evaluated, and the alert for the outage sees it.
func TestPrometheus(t *testing.T) {
	required(t)
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	p := startPrometheus(ctx, t, startShow(ctx, t))

	var missing []string
	pending := false
	for ctx.Err() == nil {
		missing = p.missing(ctx, t)
		pending = pending || p.pending(ctx, t, "StaggerCallsFail")
		if len(missing) == 0 && pending {
			return
		}
		time.Sleep(time.Second)
	}
	t.Errorf("without data: %q; StaggerCallsFail has seen the outage: %v", missing, pending)
}

// What the rules make of the clients' metrics is what the servers have counted.
func TestPrometheus_Success(t *testing.T) {
	required(t)
	t.Parallel()
	f, u := startTestShop(t)
	p := startPrometheus(t.Context(), t, slices.Collect(maps.Values(f.web)))
	for _, phase := range []phase{phases[0], phases[2], phases[3]} { // servers that die don't tell what they have counted
		phase.length = 5 * time.Second
		if _, err := play(t.Context(), f, u, phase); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(3 * time.Second) // until the last calls are scraped
	service := func(name, method string) string { return fmt.Sprintf("grpc_method=%q", names[name]+"/"+method) }
	// since returns a rule's figure for a method, since the start instead of for five minutes.
	since := func(rule alert, method string) float64 {
		expr := regexp.MustCompile(`rate\((\w+)\{(.*?)\}\[5m\]\)`).ReplaceAllString(rule.Expr, "$1{$2,"+method+"}")
		if expr == rule.Expr {
			t.Fatalf("no rates in %s", expr)
		}
		return p.value(t, expr)
	}
	counted := func(of string) float64 { return p.value(t, "sum(grpc_server_call_duration_seconds_count{"+of+"})") }
	success := func(method string) float64 {
		return counted(method+`,grpc_status="OK"`) / counted(method+`,grpc_status!="CANCELLED"`)
	}
	inventory, orders := service("inventory", "GetStock"), service("orders", "GetOrder")
	attempts, calls := p.value(t, "sum(grpc_client_attempt_duration_seconds_count{"+inventory+"})"), p.value(t, "sum(grpc_client_call_duration_seconds_count{"+inventory+"})")
	effective, actual := recorded(t)[0], recorded(t)[1]
	for _, row := range []struct {
		what      string
		got, want float64
	}{
		{"success of calls at the gateway", since(effective, orders), success(service("gateway", "Browse"))},
		{"success of attempts at orders", since(actual, orders), success(orders)},
		{"success of attempts at inventory", since(actual, inventory), success(inventory)},
		{"requests per call at inventory", attempts / calls, counted(inventory) / calls},
	} {
		t.Logf("%s: %.4f, the servers' %.4f", row.what, row.got, row.want)
		// On a busy machine, a server now and then counts a cancelled attempt otherwise.
		if difference := math.Abs(row.got/row.want - 1); !(difference < 0.02) {
			t.Errorf("%s: %v; the servers counted %v", row.what, row.got, row.want)
		}
	}
	// How many calls the retries save depends on the machine: they are extra attempts beside slow ones.
	if attempts <= calls || since(effective, inventory) < since(actual, inventory) {
		t.Errorf("%v attempts for %v calls, and more of the attempts succeed than of the calls", attempts, calls)
	}
}

// value returns the only number of a query.
func (p scraper) value(t *testing.T, query string) float64 {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	p.get(t.Context(), t, "/api/v1/query?"+url.Values{"query": {query}}.Encode(), &data)
	if len(data.Result) != 1 {
		t.Fatalf("%s: %d results; want 1", query, len(data.Result))
	}
	text, _ := data.Result[0].Value[1].(string)
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(query, err)
	}
	return x
}

func TestAlertRules(t *testing.T) {
	required(t)
	t.Parallel()
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "alerts.yaml"}, {"check", "config", "prometheus.yml"}, {"test", "rules", "alerts_test.yaml"}} {
		if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// startShow plays the show until ctx ends, and returns the addresses of the metrics.
func startShow(ctx context.Context, t *testing.T) []string {
	t.Helper()
	f, u := startTestShop(t)
	ctx, stop := context.WithCancel(ctx)
	played := make(chan error, 1)
	go func() {
		for {
			for _, p := range phases {
				if _, err := play(ctx, f, u, p); err != nil {
					played <- err
					return
				}
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		if err := <-played; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return slices.Collect(maps.Values(f.web))
}

// scraper is the API of a running Prometheus.
type scraper struct {
	url   string
	start time.Time
}

const config = `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: shop, static_configs: [{targets: [%s]}]}]
`

// startPrometheus starts a Prometheus that scrapes the targets, with the shop's rules.
func startPrometheus(ctx context.Context, t *testing.T, targets []string) scraper {
	t.Helper()
	rules, err := filepath.Abs("alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return startPrometheusWith(ctx, t, rules, targets)
}

// startPrometheusWith starts a Prometheus that scrapes the targets, on loopback and with data that are deleted after the test.
func startPrometheusWith(ctx context.Context, t *testing.T, rules string, targets []string) scraper {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "prometheus.yml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, rules, strings.Join(targets, ", ")), 0o600); err != nil {
		t.Fatal(err)
	}
	port := anyPort()
	address, err := freeAddress(ctx, &port)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(ctx, "prometheus", "--config.file="+file, "--web.listen-address="+address,
		"--storage.tsdb.path="+filepath.Join(folder, "data"), "--log.level=warn")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	command.Stderr = t.Output()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = command.Wait()
	})
	p := scraper{"http://" + address, time.Now()}
	for ctx.Err() == nil {
		response, err := http.Get(p.url + "/-/ready")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return p
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("Prometheus is not ready in time")
	return p
}

// get queries the API, and decodes the answer's data.
func (p scraper) get(ctx context.Context, t *testing.T, path string, data any) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer := struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   any    `json:"data"`
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %s %s %v", path, answer.Status, answer.Error, err)
	}
}

// missing returns the dashboard's queries and the alerts' metrics that have had no data so far.
func (p scraper) missing(ctx context.Context, t *testing.T) (list []string) {
	t.Helper()
	for _, q := range dashboard(t) {
		if strings.Contains(q.text, `reason="not_idempotent"`) {
			continue // in the shop, a service that gives up stops its callers first
		}
		if !p.hasData(ctx, t, q.text) {
			list = append(list, q.panel+": "+q.text)
		}
	}
	for _, a := range rules(t) {
		for _, name := range metricNames(a.Expr) {
			if !p.hasData(ctx, t, name) {
				list = append(list, a.Alert+a.Record+": "+name)
			}
		}
	}
	return list
}

// hasData reports whether a query has a number at any time since the start.
func (p scraper) hasData(ctx context.Context, t *testing.T, query string) bool {
	t.Helper()
	var data struct {
		Result []struct{ Values [][2]any }
	}
	seconds := func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
	p.get(ctx, t, "/api/v1/query_range?"+url.Values{
		"query": {query}, "start": {seconds(p.start)}, "end": {seconds(time.Now())}, "step": {"1"},
	}.Encode(), &data)
	for _, series := range data.Result {
		for _, v := range series.Values {
			text, _ := v[1].(string)
			if x, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) {
				return true
			}
		}
	}
	return false
}

// pending reports whether an alert is pending, and fails the test if a rule is unhealthy.
func (p scraper) pending(ctx context.Context, t *testing.T, name string) (yes bool) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, State, Health, LastError string }
		}
	}
	p.get(ctx, t, "/api/v1/rules", &data)
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			if r.Health == "err" {
				t.Errorf("%s: %s", r.Name, r.LastError)
			}
			yes = yes || r.Name == name && (r.State == "pending" || r.State == "firing")
		}
	}
	return yes
}
