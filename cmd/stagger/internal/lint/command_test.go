// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/cmd/stagger/internal/lint"
	"github.com/stagger-go/stagger/internal/testkit"
)

const good = `methodConfig:
- name: [{service: a.B, method: C}]
  timeout: 5s
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
loadBalancingConfig: [{round_robin: {}}]
`

const doubtful = `methodConfig:
- name: [{service: a.B, method: C}]
  timeout: 3s
  retryPolicy:
    maxAttempts: 9
    initialBackoff: 0.0001s
    maxBackoff: 90s
    backoffMultiplier: 10
    retryableStatusCodes: [UNAVAILABLE, NOT_FOUND]
    jitter: NONE
    perAttemptTimeout: 4s
    budget: NONE
- name: [{service: a.B, method: D}]
  hedgingPolicy: {maxAttempts: 6, budget: NONE}
loadBalancingConfig: [{round_robin: {}}]
`

// plain is a service config that says nothing of time, nor of load balancing.
const plain = `{"methodConfig": [{"name": [{"service": "a.B", "method": "C"}],
  "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}
`

const bad = `methodConfig:
- name: [{service: a.B, method: C}]
  retryPolicy: {maxAttempts: 1, initialBackoff: 50ms, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`

// run returns the command's output and error, for a file with the given text.
func run(t *testing.T, text string, args ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "retry.yaml")
	testkit.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	got, err := lintFiles(append(args, file)...)
	return strings.ReplaceAll(got, file, "retry.yaml"), err
}

func lintFiles(args ...string) (string, error) {
	var out strings.Builder
	c := lint.Command()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage, c.SilenceErrors = true, true
	err := c.Execute()
	return out.String(), err
}

func TestLint(t *testing.T) {
	t.Parallel()
	if got, err := run(t, good, "--strict"); err != nil || got != "retry.yaml: can be used; 1 policy\n" {
		t.Errorf("%v\n%s", err, got)
	}
}

// Advice is a note, with which --strict passes.
func TestLintPlainServiceConfig(t *testing.T) {
	t.Parallel()
	if got, err := run(t, plain, "--strict"); err != nil ||
		!strings.HasPrefix(got, "note: retry.yaml:1:18: methodConfig: the file names no load balancing. ") ||
		!strings.Contains(got, "\nnote: retry.yaml:1:19: methodConfig[0]: a unary call without a deadline ") ||
		strings.Count(got, "\n") != 3 {
		t.Errorf("%v\n%s\nwant two notes", err, got)
	}
}

// A file without policies is valid, and most often not what its author wanted.
func TestLint_NoPolicies(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{}", "methodConfig: []", "mode: OFF"} {
		if got, err := run(t, text); err != nil || got != "retry.yaml: valid, but without policies: nothing is retried\n" {
			t.Errorf("%s: %v\n%s", text, err, got)
		}
	}
}

func TestLint_Quiet(t *testing.T) {
	t.Parallel()
	if got, err := run(t, good, "--quiet"); err != nil || got != "" {
		t.Errorf("%v\n%s\nwant nothing of a valid file", err, got)
	}
	if got, err := run(t, doubtful, "-q"); err != nil || !strings.HasPrefix(got, "warning: ") || strings.Contains(got, "can be used") {
		t.Errorf("%v\n%s\nwant the advice only", err, got)
	}
}

func TestLintAdvice(t *testing.T) {
	t.Parallel()
	got, err := run(t, doubtful)
	want := `warning: retry.yaml:5:18: methodConfig[0].retryPolicy.maxAttempts: 9: is cut to 5, unless a higher maxAttemptsLimit allows more
warning: retry.yaml:6:21: methodConfig[0].retryPolicy.initialBackoff: 0.0001s: is less than timers resolve (1ms): retries follow immediately
warning: retry.yaml:7:17: methodConfig[0].retryPolicy.maxBackoff: 90s: 30s to 60s are enough: few callers wait longer
warning: retry.yaml:9:27: methodConfig[0].retryPolicy.retryableStatusCodes: NOT_FOUND: the same call will most likely fail again; if it means something else here, say so with interceptor.WithClassifier
warning: retry.yaml:10:13: methodConfig[0].retryPolicy.jitter: NONE: without jitter, clients that failed together come back together; FULL, the default, spreads them
warning: retry.yaml:11:24: methodConfig[0].retryPolicy.perAttemptTimeout: 4s: timeout ends the call after 3s already
warning: retry.yaml:12:13: methodConfig[0].retryPolicy.budget: NONE: nothing bounds what all calls together add in an outage, but maxAttempts: up to 5 times the load
note: retry.yaml:13:3: methodConfig[1]: a unary call without a deadline waits for ever for a server that hangs; set a timeout, or defaultTimeout at the top of the file, for unary calls without a deadline
warning: retry.yaml:14:18: methodConfig[1].hedgingPolicy: without hedgingDelay all attempts are sent in parallel: 5 times the load, as far as the budget goes
warning: retry.yaml:14:32: methodConfig[1].hedgingPolicy.maxAttempts: 6: is cut to 5, unless a higher maxAttemptsLimit allows more
warning: retry.yaml:14:43: methodConfig[1].hedgingPolicy.budget: NONE: nothing bounds the hedges of a service that has become slow: up to 5 times the load
retry.yaml: can be used; 2 policies
`
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if _, err := run(t, doubtful, "--strict"); err == nil {
		t.Error("--strict takes a file that there is advice for")
	}
}

func TestLintSlowAttempts(t *testing.T) {
	t.Parallel()
	got, err := run(t, `methodConfig:
- name: [{service: a.B, method: C}]
  timeout: 3s
  retryPolicy: {maxAttempts: 4, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 0.8s}
loadBalancingConfig: [{round_robin: {}}]
`)
	want := `warning: retry.yaml:4:30: methodConfig[0].retryPolicy.maxAttempts: 4: if attempts are slow, the waits and 3 times perAttemptTimeout do not fit: timeout ends the call after 3s
retry.yaml: can be used; 1 policy
`
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if got, err := run(t, strings.Replace(good, "{maxAttempts", "{perAttemptTimeout: 1s, maxAttempts", 1), "--strict"); err != nil {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestFormatJSON(t *testing.T) {
	t.Parallel()
	got, err := run(t, bad, "--format", "json")
	var list []map[string]any
	if jsonErr := json.Unmarshal([]byte(got), &list); jsonErr != nil || err == nil || len(list) != 2 {
		t.Fatalf("%v, %v\n%s", jsonErr, err, got)
	}
	if f := list[0]; f["severity"] != "error" || f["line"] != 3.0 || f["field"] != "methodConfig[0].retryPolicy.maxAttempts" {
		t.Errorf("%v", f)
	}
	if got, err := run(t, good, "--format", "json"); err != nil || got != "[]\n" {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestFormatGitHub(t *testing.T) {
	t.Parallel()
	got, _ := run(t, bad, "--format", "github")
	if !strings.HasPrefix(got, "::error file=retry.yaml,line=3,col=30::methodConfig[0].retryPolicy.maxAttempts: 1: must be") {
		t.Error(got)
	}
}

// TestDescriptors has a service in which only one method declares itself idempotent.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	const whole = `methodConfig:
- name: [{service: acme.orders.v1.OrderService}]
  retryPolicy: {maxAttempts: 9, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE], perAttemptTimeout: 1s}
defaultTimeout: 9s
loadBalancingConfig: [{round_robin: {}}]
`
	got, err := run(t, whole, "--descriptors", "../../../../examples/orders/orders.binpb")
	lines := strings.Split(got, "\n")
	const service = "/acme.orders.v1.OrderService/"
	const named = "note: retry.yaml:2:9: methodConfig[0].name: " +
		service + "CreateOrder, " + service + "GetOrder, " + service + "ListOrders will be retried only if"
	if err != nil || len(lines) != 5 || !strings.HasPrefix(lines[0], named) ||
		!strings.Contains(lines[1], "maxAttempts: 9: is cut to 5, unless a higher maxAttemptsLimit allows more") ||
		!strings.HasPrefix(lines[2], "note: retry.yaml:3:149: methodConfig[0].retryPolicy.perAttemptTimeout: 1s: is the time to the first message of a stream. ") {
		t.Errorf("%v\n%s\nwant\n%s", err, got, named)
	}
	got, err = run(t, whole, "--descriptors", "../../../../examples/orders/orders.binpb", "--other-clients")
	if err != nil || strings.Count(got, "stagger export") != 1 {
		t.Errorf("%v\n%s\nwant advice about other clients", err, got)
	}
}

// TestMethodsOfDescriptors has names of methods that a service of the descriptor set lacks, and a misspelt service. Other services outside of the set are not reported.
func TestMethodsOfDescriptors(t *testing.T) {
	t.Parallel()
	const text = `methodConfig:
- timeout: 1s
  name:
  - {service: acme.orders.v1.OrderService, method: GetOrdr}
  - {service: acme.orders.v1.OrderService, method: GetOrder}
  - {service: acme.orders.v1.OrderServise, method: GetOrder}
  - {service: grpc.health.v1.Health, method: Chek}
`
	const want = `warning: retry.yaml:4:5: methodConfig[0].name[0]: "/acme.orders.v1.OrderService/GetOrdr": matches nothing: ` +
		"the service has no such method; did you mean GetOrder?\n" +
		`warning: retry.yaml:6:5: methodConfig[0].name[2]: "/acme.orders.v1.OrderServise/GetOrder": matches nothing: ` +
		"no descriptor has the service; did you mean acme.orders.v1.OrderService?\nretry.yaml: can be used; 4 policies\n"
	if got, err := run(t, text, "--descriptors", "../../../../examples/orders/orders.binpb"); err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if got, err := run(t, text, "--strict"); err != nil {
		t.Errorf("without descriptors: %v\n%s", err, got)
	}
}

// TestEverything has an entry for all services, none of which the command knows: those linked into it do not count.
func TestEverything(t *testing.T) {
	t.Parallel()
	got, err := run(t, strings.Replace(good, "{service: a.B, method: C}", "{}", 1), "--strict")
	if err != nil || strings.Count(got, "note: ") != 1 || strings.Contains(got, "grpc.") {
		t.Errorf("%v\n%s\nwant one note, without services of the command itself", err, got)
	}
}

// TestUnreadable has an unreadable file among others with errors, and always valid JSON.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	noAPI := filepath.Join(t.TempDir(), "bad.binpb")
	testkit.NoError(t, os.WriteFile(noAPI, []byte("no descriptors"), 0o600))
	for _, args := range [][]string{{"none.yaml"}, {"--descriptors", "none.yaml"}, {"--descriptors", noAPI}, {t.TempDir()}} {
		name := args[len(args)-1]
		got, err := run(t, bad, args...)
		if err == nil || err.Error() != "3 errors" || strings.Count(got, "error: retry.yaml:3:") != 2 || strings.Count(got, name) != 1 {
			t.Errorf("%q: %v\n%s", args, err, got)
		}
		got, err = run(t, good, append(args, "--format", "json")...)
		var list []struct {
			File string `json:"file"`
		}
		if jsonErr := json.Unmarshal([]byte(got), &list); jsonErr != nil || err == nil || len(list) != 1 || list[0].File != name {
			t.Errorf("%q: %v, %v\n%s", args, err, jsonErr, got)
		}
	}
}
