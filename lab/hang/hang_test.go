// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race

package hang

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stagger-go/stagger/internal/testkit"
)

// With and without perAttemptTimeout.
const (
	timed = `
loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}]
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy: {maxAttempts: 3, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 0.1s}
`
	untimed = `
loadBalancingConfig: [{stagger_retry_elsewhere: {childPolicy: [{round_robin: {}}]}}]
methodConfig:
  - name: [{service: acme.orders.v1.OrderService, method: GetOrder}]
    retryPolicy: {maxAttempts: 3, initialBackoff: 0.05s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`
)

var write = flag.Bool("write", false, "write the rates of the trial into examples/shop/alerts_test.yaml")

const length = 10 * time.Second

// One of three backends hangs, and nothing fails. An operator sees it by name and address: the metrics count the calls that have ended with
// the users' deadline as such, though their code is CANCELLED, so that the alerts fire for these rates, and name the backend; the log and the debug page
// have the address of the backend that hangs; and the page has the calls that run.
func TestHang(t *testing.T) {
	for _, row := range []struct{ name, file string }{{"perAttemptTimeout", timed}, {"none", untimed}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel() // most of the time is the minute until the log has its line
			s := start(t, 3, row.file)
			if _, failed := s.call(t, usual, 2*time.Second); failed[get]+failed[create] > 0 {
				t.Fatal(failed, s.log)
			}
			before, attemptsBefore := s.ends(t), s.attemptEnds(t)
			s.stop(t, 1)
			var during state
			look := time.AfterFunc(length/2, func() { s.state(t, &during) })
			calls, failed := s.call(t, usual, length)
			look.Stop()
			ends := s.ends(t)
			for e, n := range before {
				ends[e] -= n
			}
			maps.DeleteFunc(ends, func(_ end, n int) bool { return n == 0 })
			attempts := s.attemptEnds(t)
			for e, n := range attemptsBefore {
				attempts[e] -= n
			}
			for method, n := range calls {
				t.Logf("%s: %.1f %% of %d calls fail", method, 100*float64(failed[method])/float64(n), n)
			}
			t.Logf("of all calls below, %.1f %% are failures by their reasons, and %.1f %% by codes other than CANCELLED",
				100*share(ends, failedByReason), 100*share(ends, func(e end) bool { return e.code != "OK" && e.code != "CANCELLED" }))
			s.checkEnds(t, ends)
			s.checkAddress(t, during, row.file == timed)
			if testsRules(t) {
				checkRules(t, t.TempDir(), series(ends)+attemptSeries(attempts), s.addresses[1])
				if *write && row.file == timed {
					writeRates(t, series(ends))
				}
			}
		})
	}
}

// failedByReason reports whether the alert counts a call as failed.
func failedByReason(e end) bool {
	return e.code != "OK" && e.reason != "cancelled" && e.reason != "closed"
}

// share returns the share of calls that ended so.
func share(ends map[end]int, is func(end) bool) float64 {
	all, some := 0, 0
	for e, n := range ends {
		all += n
		if is(e) {
			some += n
		}
	}
	return float64(some) / float64(all)
}

// checkEnds checks that calls that their users' deadlines have ended count as failed. Users never leave before, so that nearly none is
// cancelled; on a busy machine a few of their requests arrive late, and so have their deadlines.
func (s *trial) checkEnds(t *testing.T, ends map[end]int) {
	t.Helper()
	counted := share(ends, failedByReason)
	left := share(ends, func(e end) bool { return e.reason == "cancelled" })
	if counted < 0.0144 || left > counted/2 {
		t.Errorf("%.4f of the calls count as failed, and %.4f as cancelled: %+v", counted, left, ends)
	}
	for e, n := range ends {
		if e.code == "CANCELLED" && e.slow != "true" {
			t.Errorf("%d calls of %+v: none was slow", n, e)
		}
	}
}

// state is what the debug page says.
type state []struct {
	Running  []struct{ Method string }
	Backends []struct {
		Address        string
		Attempts, Slow int
	}
	Decisions []struct {
		TimedOut bool
		Peer     string
	}
}

// checkAddress checks that log and page have the address of the backend that hangs, and so have decisions on slow attempts, if there are any.
func (s *trial) checkAddress(t *testing.T, during state, decisions bool) {
	t.Helper()
	stopped := s.addresses[1]
	if len(during) != 1 || len(during[0].Running) == 0 {
		t.Fatalf("while calls hang, the page has %+v", during)
	}
	var after state
	s.state(t, &after)
	backends := after[0].Backends
	if len(backends) != 3 || backends[0].Address != stopped || backends[0].Slow < 10 || backends[1].Slow > backends[0].Slow/5 {
		t.Errorf("the page has %+v; want %s to be slow", backends, stopped)
	}
	named := 0
	for _, d := range after[0].Decisions {
		if d.TimedOut && d.Peer == stopped {
			named++
		}
	}
	if decisions && named == 0 {
		t.Errorf("no decision on a slow attempt has its backend: %+v", after[0].Decisions)
	}
	want := "attempts at " + stopped + " were slow: "
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.log.String(), want); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("want %q in the log:\n%s", want, s.log)
		}
	}
	_, line, _ := strings.Cut(s.log.String(), want)
	line, _, _ = strings.Cut(line, "\n")
	t.Log(want + line)
}

// testsRules reports whether there is a promtool. `make ops` installs one, and requires it.
func testsRules(t *testing.T) bool {
	t.Helper()
	_, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("STAGGER_PROMETHEUS") != "" {
		t.Fatal(err)
	}
	return err == nil
}

// series returns the input of promtool: the trial's calls, at its rate, for two hours.
func series(ends map[end]int) string {
	var text strings.Builder
	for _, e := range slices.SortedFunc(maps.Keys(ends), func(a, b end) int {
		return cmp.Or(cmp.Compare(a.method, b.method), cmp.Compare(a.code, b.code), cmp.Compare(a.reason, b.reason), cmp.Compare(a.slow, b.slow))
	}) {
		fmt.Fprintf(&text, "      - {series: 'stagger_client_calls_total{job=\"middle\", grpc_target=\"dns:///backends\", grpc_method=%q, grpc_status=%q, reason=%q, slow=%q}', values: 0+%dx120}\n",
			e.method, e.code, e.reason, e.slow, ends[e]*int(time.Minute/length))
	}
	return text.String()
}

// attemptSeries returns the input of promtool: the trial's attempts, by backend.
func attemptSeries(attempts map[attemptEnd]int) string {
	var text strings.Builder
	for e, n := range attempts {
		fmt.Fprintf(&text, "      - {series: 'stagger_client_attempts_total{job=\"middle\", grpc_target=\"dns:///backends\", stagger_backend=%q, grpc_status=%q, slow=%q}', values: 0+%dx120}\n",
			e.backend, e.code, e.slow, n*int(time.Minute/length))
	}
	return text.String()
}

const rulesTest = `rule_files: [%s]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
%s    promql_expr_test:
      - {expr: 'count(ALERTS{alertname="StaggerCallsFail", alertstate="firing", severity="critical"})', eval_time: 90m, exp_samples: [{labels: '{}', value: 1}]}
      - {expr: 'count by (stagger_backend) (ALERTS{alertname="StaggerBackendFails", alertstate="firing"})', eval_time: 6m, exp_samples: [{labels: '{stagger_backend="%s"}', value: 1}]}
      - {expr: 'count by (grpc_method) (ALERTS{alertname="StaggerMethodFails", alertstate="firing", grpc_method=~".*/CreateOrder"})', eval_time: 10m,
         exp_samples: [{labels: '{grpc_method="acme.orders.v1.OrderService/CreateOrder"}', value: 1}]}
`

// checkRules checks that the alerts that are shipped fire for these calls and attempts, and name the backend that hangs.
func checkRules(t *testing.T, folder, input, stopped string) {
	t.Helper()
	rules := testkit.Must(filepath.Abs("../../examples/shop/alerts.yaml"))(t)
	file := filepath.Join(folder, "test.yaml")
	testkit.NoError(t, os.WriteFile(file, fmt.Appendf(nil, rulesTest, rules, input, stopped), 0o600))
	if out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// writeRates replaces the trial's rates in the tests of the shipped rules.
func writeRates(t *testing.T, input string) {
	t.Helper()
	const file, begin, end = "../../examples/shop/alerts_test.yaml", "    input_series: # lab/hang -write\n", "    # lab/hang\n"
	text := string(testkit.Must(os.ReadFile(file))(t))
	head, rest, found := strings.Cut(text, begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the rates", file)
	}
	testkit.NoError(t, os.WriteFile(file, []byte(head+begin+input+end+tail), 0o644))
}
