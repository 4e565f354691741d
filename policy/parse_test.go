// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

func mustParse(t testing.TB, file, text string) *policy.Set {
	t.Helper()
	set, err := policy.Parse(file, []byte(text))
	if err != nil {
		t.Fatalf("Parse(\n%s) = %v", text, err)
	}
	return set
}

const ms = time.Millisecond

func mustLoad(t testing.TB, name string) *policy.Set {
	t.Helper()
	return testkit.Must(policy.Load(filepath.Join("testdata", "good", name)))(t)
}

// TestParseDesignExample parses a file with keys of all kinds.
func TestParseDesignExample(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, "design.yaml")
	want := spec.Policy{
		Timeout:     2 * time.Second,
		Idempotency: "ASSUME", // its names have methods
		Admission:   "NONE",
		Mode:        "ENFORCE",
		Retry: &spec.Retry{
			MaxAttempts:          4,
			Backoff:              backoff.Config{Initial: 50 * ms, Max: 2 * time.Second, Multiplier: 2, Growth: "EXPONENTIAL", Jitter: "FULL"},
			RetryableStatusCodes: []codes.Code{codes.ResourceExhausted, codes.Unavailable},
			PerAttemptTimeout:    500 * ms,
			Budget:               "orders",
			OnAttemptTimeout:     "HEDGE",
			FirstRetry:           "BACKOFF",
			Chain:                "ALLOW",
		},
	}
	for _, method := range []string{"GetOrder", "ListOrders"} {
		p := set.Lookup("/acme.orders.v1.OrderService/" + method)
		if p == nil || !reflect.DeepEqual(compiled.Of(p).Policy, want) {
			t.Errorf("Lookup(%s) = %+v; want %+v", method, p, want)
		}
	}
	bucket := budget.Default()
	bucket.Size = 20
	if got := compiled.OfSet(set).Budgets; !reflect.DeepEqual(got, []spec.Budget{{Name: "orders", Scope: "TARGET", Config: bucket}}) {
		t.Errorf("Budgets = %+v", got)
	}
	if got := set.Warnings(); len(got) > 0 {
		t.Errorf("Warnings = %v; want none", got)
	}
}

func TestParsePlainServiceConfig(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, "grpc.json")
	want := spec.Policy{
		Timeout: time.Second, WaitForReady: new(true), MaxRequestMessageBytes: new(1024), MaxResponseMessageBytes: new(0),
		Idempotency: "DECLARED", Admission: "NONE", Mode: "ENFORCE",
		Retry: &spec.Retry{
			MaxAttempts:          4,
			Backoff:              backoff.Config{Initial: 10 * ms, Max: time.Second, Multiplier: 1.5, Growth: "EXPONENTIAL", Jitter: "FULL"},
			RetryableStatusCodes: []codes.Code{codes.Canceled, codes.Aborted, codes.Unavailable},

			OnAttemptTimeout: "HEDGE", FirstRetry: "BACKOFF", Chain: "ALLOW",
		},
	}
	if p := set.Lookup("/echo.Echo/Say"); p == nil || !reflect.DeepEqual(compiled.Of(p).Policy, want) {
		t.Errorf("Lookup = %+v; want %+v", p, want)
	}
	if got := compiled.OfSet(set).RetryThrottling; got == nil || *got != (budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 0.1}) {
		t.Errorf("Throttling = %+v", got)
	}
}

func TestParseEveryKey(t *testing.T) {
	t.Parallel()
	set := mustLoad(t, "all.yaml")
	b := backoff.Config{
		Initial: 100 * ms, Max: 10 * time.Second, Multiplier: 1.5, Growth: "LINEAR", Jitter: "PROPORTIONAL",
	}
	slow, fixed := b, b
	slow.Max = time.Minute
	fixed.Initial, fixed.Multiplier, fixed.Growth, fixed.Jitter = time.Nanosecond, 1, "FIXED", "NONE"
	want := spec.Policy{
		Timeout: 1500 * ms, WaitForReady: new(false), MaxRequestMessageBytes: new(4096), MaxResponseMessageBytes: new(8192),
		Idempotency: "NONE",
		Admission:   "NONE",
		Mode:        "ENFORCE",
		Retry: &spec.Retry{
			MaxAttempts: 5, Backoff: b,
			RetryableStatusCodes: []codes.Code{codes.Canceled, codes.ResourceExhausted, codes.Aborted, codes.Unavailable},
			PerCode: []spec.Code{
				{Codes: []codes.Code{codes.ResourceExhausted}, MaxAttempts: 2, Backoff: &slow, OnlyWithServerDelay: true},
				{Codes: []codes.Code{codes.Aborted}, Backoff: &fixed},
				{Codes: []codes.Code{codes.Canceled}, MaxAttempts: 1},
			},
			PerAttemptTimeout: 250 * ms, OnAttemptTimeout: "RETRY", Budget: "shared",
			Chain: "SUPPRESS", FirstRetry: "AT_ONCE",
		},
		MaxPushback: time.Minute, MaxConnectionWait: new(7 * time.Second),
	}
	if p := set.Lookup("/a.B/C"); p == nil || !reflect.DeepEqual(compiled.Of(p).Policy, want) {
		t.Errorf("Lookup(/a.B/C) = %+v; want %+v", compiled.Of(p).Retry, want.Retry)
	}
	wantBudgets := []spec.Budget{
		{Name: "shared", Scope: "PROCESS", Config: budget.BucketConfig{
			Size: 12.5, PerSuccess: 0, SlowCost: 4, Refund: 0, RefundSize: 20,
		}},
		{Name: "tokens", Scope: "SERVICE", Config: budget.ThrottleConfig{MaxTokens: 1000, TokenRatio: 0.001}},
		{Name: "beside", Scope: "TARGET", Config: budget.Default()}, // no key: the default
	}
	if got := compiled.OfSet(set).Budgets; !reflect.DeepEqual(got, wantBudgets) {
		t.Errorf("Budgets = %+v; want %+v", got, wantBudgets)
	}
	wantHedge := &spec.Hedge{
		MaxAttempts: 3, NonFatalStatusCodes: []codes.Code{codes.Unavailable}, Budget: "tokens",
		Quantile: 0.95, MinDelay: 5 * ms, MaxDelay: time.Second,
	}
	if got := compiled.Of(set.Lookup("/a.B/D")).Hedge; !reflect.DeepEqual(got, wantHedge) {
		t.Errorf("Hedge = %+v; want %+v", got, wantHedge)
	}
	if s := compiled.Of(set.Lookup("/a.B/D")); s.MaxPushback != time.Minute {
		t.Errorf("MaxPushback = %v; want 1m0s", s.MaxPushback)
	}
	if p := set.Lookup("/a.B/D"); compiled.Of(p).Admission != "REFUSE" {
		t.Errorf("Admission = %v; want REFUSE", compiled.Of(p).Admission)
	}
	if key, most := compiled.Of(set.Lookup("/a.B/D")).IdempotencyKey, compiled.OfSet(set).MaxWaiting; key != "x-request-key" || most != 500 {
		t.Errorf("IdempotencyKey = %q, MaxWaiting = %d", key, most)
	}
}

// TestParseJSONAsYAML parses texts that are both JSON and YAML, as each.
func TestParseJSONAsYAML(t *testing.T) {
	t.Parallel()
	data := testkit.Must(os.ReadFile("testdata/good/grpc.json"))(t)
	asJSON, asYAML := mustParse(t, "a.json", string(data)), mustParse(t, "a.yaml", "---\n"+string(data))
	if len(compiled.OfSet(asJSON).Methods) == 0 || !reflect.DeepEqual(compiled.OfSet(asJSON).Config, compiled.OfSet(asYAML).Config) {
		t.Errorf("JSON gives %+v, YAML %+v", compiled.OfSet(asJSON).Config, compiled.OfSet(asYAML).Config)
	}
}

func TestParseAlias(t *testing.T) {
	t.Parallel()
	set := mustParse(t, "f", `
methodConfig:
- name: [{service: a.A, method: &m M}]
  retryPolicy: &retry {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [14]}
- name: [{service: a.B, method: *m}]
  retryPolicy: *retry
`)
	if p := set.Lookup("/a.B/M"); p == nil || compiled.Of(p).Retry.MaxAttempts != 3 {
		t.Errorf("Lookup(/a.B/M) = %+v; want 3 attempts", p)
	}
}

// TestParseRecvTimeout has the per-attempt timeout as gRPC's C-core and Java name it.
func TestParseRecvTimeout(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{"": "RETRY", ", onAttemptTimeout: HEDGE": "HEDGE"} {
		set := mustParse(t, "f", "methodConfig:\n- name: [{service: a.B, method: C}]\n  retryPolicy: {maxAttempts: 3, initialBackoff: 1s, maxBackoff: 1s, "+
			"backoffMultiplier: 2, retryableStatusCodes: [14], perAttemptRecvTimeout: 2s"+more+"}\n")
		if r := compiled.Of(set.Lookup("/a.B/C")).Retry; r.PerAttemptTimeout != 2*time.Second || r.OnAttemptTimeout != want {
			t.Errorf("%q: %v, %v; want 2s, %v", more, r.PerAttemptTimeout, r.OnAttemptTimeout, want)
		}
	}
}

// A list or null in the place of another value is one mistake. Quotes don't mend it, nor a map.
func TestParseListsAndMaps(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	tree := allKeys(t)
	tried := 0
	eachChange(t, &tree, []string{`{"a": 1}`, "[[]]", "null"}, func(change string) {
		if !strings.Contains(change, " = ") {
			return
		}
		_, err := policy.Parse("f.json", testkit.Must(json.Marshal(tree))(t))
		if err == nil {
			return
		}
		tried++
		if strings.Contains(err.Error(), "quotes") {
			t.Errorf("%s: %v", change, err)
		}
		if lines := strings.Split(err.Error(), "\n"); len(lines) > 1 && !strings.HasSuffix(change, "}") {
			t.Errorf("%s: %d messages: %v", change, len(lines), err)
		}
	})
	if tried < 300 {
		t.Errorf("%d changes were errors; want more", tried)
	}
}

// Each of the 16 codes may have settings of its own.
func TestParse_PerCodeOfAll(t *testing.T) {
	t.Parallel()
	var all, own []string
	for n := range 16 {
		code := strconv.Itoa(n + 1)
		all = append(all, code)
		own = append(own, "{codes: ["+code+"]}")
	}
	set := mustParse(t, "f", "methodConfig: [{name: [{service: a.B}], retryPolicy: {maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2,\n"+
		"  retryableStatusCodes: ["+strings.Join(all, ", ")+"], perCode: ["+strings.Join(own, ", ")+"]}}]")
	if got := len(compiled.Of(set.Lookup("/a.B/C")).Extra.PerCode); got != 16 {
		t.Errorf("%d codes have settings of their own; want 16", got)
	}
}
