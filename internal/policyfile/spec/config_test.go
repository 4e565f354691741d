// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package spec_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/spec"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/internal/testkit/policytest"
	"github.com/stagger-go/stagger/policy"
)

// goodConfig returns a valid config that each row of the test breaks.
func goodConfig() spec.Config {
	retry := policytest.UsualRetry()
	retry.Budget = "b"
	return spec.Config{
		Methods: []spec.MethodConfig{{
			Names:  []string{"/a.B/C"},
			Policy: spec.Policy{Retry: &retry},
		}},
		Budgets: []spec.Budget{{Name: "b", Config: budget.Default()}},
	}
}

// TestNewSetRefuses has the rules for configs that no file can break. Rules for both are in testdata/bad. Without a file,
// errors have no place and show Go values.
func TestNewSetRefuses(t *testing.T) {
	t.Parallel()
	const entry, retry = "methodConfig[0].", "methodConfig[0].retryPolicy."
	for _, row := range []struct {
		want  string
		spoil func(*spec.Config, *spec.Retry)
	}{
		{entry + "timeout: -1s: must be more than 0s", func(c *spec.Config, _ *spec.Retry) { c.Methods[0].Timeout = -time.Second }},
		{entry + "maxRequestMessageBytes: -1: must not be negative", func(c *spec.Config, _ *spec.Retry) { c.Methods[0].MaxRequestMessageBytes = new(-1) }},
		{entry + "maxResponseMessageBytes: -2: must not be negative", func(c *spec.Config, _ *spec.Retry) { c.Methods[0].MaxResponseMessageBytes = new(-2) }},
		{retry + "maxAttempts: 0: must be at least 2, since it counts the first attempt; for one attempt leave the policy out", func(_ *spec.Config, r *spec.Retry) { r.MaxAttempts = 0 }},
		{retry + "backoffMultiplier: NaN: must be a number more than 0", func(_ *spec.Config, r *spec.Retry) { r.Backoff.Multiplier = math.NaN() }},
		{retry + "backoffMultiplier: +Inf: must be a number more than 0", func(_ *spec.Config, r *spec.Retry) { r.Backoff.Multiplier = math.Inf(1) }},
		{retry + `budget: "x": no budget has that name; declare it under budgets, or write NONE for no limit`, func(_ *spec.Config, r *spec.Retry) { r.Budget = "x" }},
		{retry + "perCode[0].initialBackoff: 0s: must be more than 0s", func(_ *spec.Config, r *spec.Retry) {
			r.PerCode = []spec.Code{{Codes: r.RetryableStatusCodes, Backoff: &backoff.Config{Max: 1, Multiplier: 1}}}
		}},
		{retry + "perCode[0].maxAttempts: -1: must be 1 to the policy's maxAttempts, 3", func(_ *spec.Config, r *spec.Retry) {
			r.PerCode = []spec.Code{{Codes: r.RetryableStatusCodes, MaxAttempts: -1}}
		}},
		{"methodConfig[0].hedgingPolicy.hedgingQuantile.quantile: 0: must be more than 0 and less than 1, such as 0.95", func(c *spec.Config, _ *spec.Retry) {
			c.Methods[0].Retry, c.Methods[0].Hedge = nil, &spec.Hedge{MaxAttempts: 2, MinDelay: 1, Budget: "b"}
		}},
		{"methodConfig[0].hedgingPolicy.hedgingQuantile.quantile: 0: must be more than 0 and less than 1, such as 0.95", func(c *spec.Config, _ *spec.Retry) {
			c.Methods[0].Retry, c.Methods[0].Hedge = nil, &spec.Hedge{MaxAttempts: 2, MaxDelay: 1, Budget: "b"}
		}},
		{"methodConfig[0].hedgingPolicy.hedgingQuantile.quantile: 2: must be more than 0 and less than 1, such as 0.95", func(c *spec.Config, _ *spec.Retry) {
			c.Methods[0].Retry, c.Methods[0].Hedge = nil, &spec.Hedge{MaxAttempts: 2, Quantile: 2, Budget: "b"}
		}},
		{"methodConfig[0].retryPolicy.maxConnectionWait: -1ns: must be at least 0s, with which calls don't wait", func(c *spec.Config, _ *spec.Retry) {
			c.Methods[0].MaxConnectionWait = new(time.Duration(-1))
		}},
		{"methodConfig[0].retryPolicy: is required by maxPushback and maxConnectionWait, which limit extra attempts", func(c *spec.Config, _ *spec.Retry) {
			c.Methods[0].Retry, c.Methods[0].MaxConnectionWait = nil, new(time.Duration(0))
		}},
		{"methodConfig[0].retryPolicy: is required by maxPushback and maxConnectionWait, which limit extra attempts", func(c *spec.Config, _ *spec.Retry) {
			c.Methods[0].Retry, c.Methods[0].MaxPushback = nil, 1
		}},
		{`methodConfig[0].name[0]: "a.B/C": must be "/service/method", "/service/" or "/"`, func(c *spec.Config, _ *spec.Retry) {
			c.Methods[0].Names[0] = "a.B/C"
		}},
		{
			`methodConfig[0].name[0]: "C": must be "/service/method", "/service/" or "/"` + "\n" + `methodConfig[0].name[1]: "C": must be "/service/method", "/service/" or "/"`,
			func(c *spec.Config, _ *spec.Retry) { c.Methods[0].Names = []string{"C", "C"} },
		},
		{`methodConfig[0].name[0]: "//C": must be "/service/method", "/service/" or "/"`, func(c *spec.Config, _ *spec.Retry) {
			c.Methods[0].Names[0] = "//C"
		}},
		{`methodConfig[0].name[0]: "/a.B/C/D": must be "/service/method", "/service/" or "/"`, func(c *spec.Config, _ *spec.Retry) {
			c.Methods[0].Names[0] = "/a.B/C/D"
		}},
		{"maxAttemptsLimit: 1: must be 2 to 100; for no retries leave the policies out", func(c *spec.Config, _ *spec.Retry) { c.MaxAttemptsLimit = 1 }},
		{"maxAttemptsLimit: 101: must be 2 to 100; for no retries leave the policies out", func(c *spec.Config, _ *spec.Retry) { c.MaxAttemptsLimit = 101 }},
		{"budgets[0].bucket.refund: NaN: must be 0 to 10", func(c *spec.Config, _ *spec.Retry) {
			bucket := budget.Default()
			bucket.Refund = math.NaN()
			c.Budgets[0].Config = bucket
		}},
		{"budgets[0]: must have a kind: bucket or throttle", func(c *spec.Config, _ *spec.Retry) { c.Budgets[0].Config = nil }},
		{"retryThrottling.tokenRatio: +Inf: must be at least 0.001, and finite", func(c *spec.Config, _ *spec.Retry) {
			c.RetryThrottling = &budget.ThrottleConfig{MaxTokens: 1, TokenRatio: math.Inf(1)}
		}},
	} {
		c := goodConfig()
		row.spoil(&c, c.Methods[0].Retry)
		set, err := compiled.NewSet(c)
		if err == nil || err.Error() != row.want || set != nil {
			t.Errorf("NewSet = %v, %v; want the error %s", set, err, row.want)
		}
	}
}

// TestNewSetAccepts has the last values that are allowed.
func TestNewSetAccepts(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*spec.Config){
		"the least maxAttemptsLimit":   func(c *spec.Config) { c.MaxAttemptsLimit = 2 },
		"the largest maxAttemptsLimit": func(c *spec.Config) { c.MaxAttemptsLimit = 100 },
		"a code with all attempts of its policy": func(c *spec.Config) {
			c.Methods[0].Retry.PerCode = []spec.Code{{Codes: []codes.Code{codes.Unavailable}, MaxAttempts: 3}}
		},
		"a hedging delay whose least is its greatest": func(c *spec.Config) {
			c.Methods[0].Policy = spec.Policy{Hedge: &spec.Hedge{MaxAttempts: 2, Quantile: 0.5, MinDelay: 1, MaxDelay: 1}}
		},
	} {
		c := goodConfig()
		set(&c)
		if _, err := compiled.NewSet(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewSetDefaults(t *testing.T) {
	t.Parallel()
	c := goodConfig()
	c.Methods[0].Retry.PerCode = []spec.Code{{Codes: []codes.Code{codes.Unavailable}, Backoff: &backoff.Config{Initial: 1, Max: 1, Multiplier: 1}}}
	set := testkit.Must(compiled.NewSet(c))(t)
	if got := compiled.OfSet(set).MaxWaiting; got != 10_000 {
		t.Errorf("%d calls may wait; want 10,000", got)
	}
	if own := compiled.Of(set.Lookup("/a.B/C")).Retry.PerCode[0].Backoff; own.Jitter != "FULL" || own.Growth != "EXPONENTIAL" {
		t.Errorf("a code's own backoff is %+v; want the words of the defaults", own)
	}
	if p := set.Lookup("/a.B/C"); p == nil || compiled.Of(p).Retry.MaxAttempts != 3 || compiled.Of(p).Retry.Budget != "b" ||
		compiled.Of(p).Retry.PerAttemptTimeout != 0 {
		t.Errorf("Lookup = %+v", p)
	}
}

// TestNewRefuses checks a policy without a set: its fields have no file and no entry.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := compiled.NewPolicy(spec.Policy{Timeout: -1, Retry: &spec.Retry{}})
	fault, ok := errors.AsType[*policy.Error](err)
	if !ok {
		t.Fatalf("New = %v; want a *policy.Error", err)
	}
	var fields []string
	for _, p := range fault.Diagnostics {
		if p.File != "" || p.Line != 0 || p.Column != 0 {
			t.Errorf("%v has a place", p)
		}
		fields = append(fields, p.Field)
	}
	want := []string{
		"timeout", "retryPolicy.maxAttempts", "retryPolicy.initialBackoff", "retryPolicy.maxBackoff",
		"retryPolicy.backoffMultiplier", "retryPolicy.retryableStatusCodes",
	}
	if len(fields) != len(want) {
		t.Fatalf("problems of %v; want %v", fields, want)
	}
	for i := range want {
		if fields[i] != want[i] {
			t.Errorf("problem %d is of %s; want %s", i, fields[i], want[i])
		}
	}
}

// TestConfigRules has the points in which gRPC implementations read a service config differently, and
// our decisions. testdata/bad has what all refuse.
func TestConfigRules(t *testing.T) {
	t.Parallel()
	const rest = `"initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1`
	entry := func(fields string) string { return `{"methodConfig": [{"name": [{}], ` + fields + `}]}` }
	retry := func(fields string) string { return entry(`"retryPolicy": {` + rest + `, ` + fields + `}`) }
	code := func(list string) string { return retry(`"maxAttempts": 2, "retryableStatusCodes": ` + list) }
	attempts := func(n string) string { return retry(`"retryableStatusCodes": [14], "maxAttempts": ` + n) }
	duration := func(d string) string { return entry(`"timeout": "` + d + `"`) }
	for _, row := range []struct {
		rule, text string
		ok         bool
	}{
		{"codes: upper case", code(`["UNAVAILABLE"]`), true},
		{"codes: lower and mixed case", code(`["unavailable", "Aborted"]`), true},
		{"codes: both spellings", code(`["CANCELLED", "CANCELED", "canceled"]`), true},
		{"codes: numbers", code(`[1, 16]`), true},
		{"codes: twice", code(`[14, 14, "UNAVAILABLE"]`), true},
		{"codes: 0", code(`[0]`), false},
		{"codes: 17", code(`[17]`), false},
		{"codes: none", code(`[]`), false},
		{"attempts: more than 5", attempts("100"), true},
		{"attempts: 2", attempts("2"), true},
		{"policies: both policies", entry(`"retryPolicy": {"maxAttempts": 2, "retryableStatusCodes": [14], ` + rest + `}, "hedgingPolicy": {"maxAttempts": 2}`), false},
		{"policies: one policy", entry(`"hedgingPolicy": {"maxAttempts": 2}`), true},
		{"keys: gRPC's other keys", `{"loadBalancingPolicy": "x", "loadBalancingConfig": [{"x": {}}], "healthCheckConfig": {}, "connectionScaling": {}}`, true},
		{"keys: gRPC's other keys of an entry", entry(`"timeout": "1s", "waitForReady": true, "maxRequestMessageBytes": 1, "maxResponseMessageBytes": 1`), true},
		{"duration: decimals", duration("0.123456789s"), true},
		{"duration: more zeros", duration("001.50s"), true},
		{"duration: minus nothing", duration("-0s"), false},
		{"duration: 292 years", duration("9223372035.999999999s"), true},
		{"duration: 10000 years, gRPC's most", duration("315576000000s"), false},
		{"text: trailing space", "{} \r\n\t", true},
		{"names: no names", `{"methodConfig": [{"name": []}]}`, true},
	} {
		set, err := policy.Parse("f.json", []byte(row.text))
		if (err == nil) != row.ok {
			t.Errorf("%s: Parse(%s) = %v; want ok: %v", row.rule, row.text, err, row.ok)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: one mistake gives more than one problem:\n%v", row.rule, err)
		}
		if err == nil && strings.HasPrefix(row.rule, "attempts: more") && compiled.Of(set.Lookup("/a/b")).Retry.MaxAttempts != 100 {
			t.Errorf("%s: %d attempts; the cap is the Retrier's business", row.rule, compiled.Of(set.Lookup("/a/b")).Retry.MaxAttempts)
		}
	}
}

// A policy is immutable, even if the config's pointers are changed afterwards.
func TestNewSetCopies(t *testing.T) {
	t.Parallel()
	slow := backoff.Config{Initial: time.Second, Max: time.Second, Multiplier: 1, Jitter: "NONE"}
	retry := policytest.UsualRetry()
	retry.PerCode = []spec.Code{{Codes: []codes.Code{codes.Unavailable}, Backoff: &slow}}
	config := spec.Config{
		Methods: []spec.MethodConfig{{
			Names:  []string{"/a.B/C"},
			Policy: spec.Policy{Retry: &retry, MaxRequestMessageBytes: new(7), MaxResponseMessageBytes: new(8), WaitForReady: new(true)},
		}, {
			Names:  []string{"/a.B/D"},
			Policy: spec.Policy{Hedge: &spec.Hedge{MaxAttempts: 3, NonFatalStatusCodes: []codes.Code{codes.Unavailable}}},
		}},
		Budgets:         []spec.Budget{{Name: "b", Config: budget.Default()}},
		RetryThrottling: &budget.ThrottleConfig{MaxTokens: 10, TokenRatio: 1},
	}
	set := testkit.Must(compiled.NewSet(config))(t)
	if config.Methods[0].Retry != &retry || retry.OnAttemptTimeout != "" || slow.Growth != "" {
		t.Errorf("NewSet has changed the caller's own: %+v, %+v", config.Methods[0].Retry, slow)
	}
	slow.Initial = 0
	config.Methods[0].Names[0] = "/a.B/E"
	*config.Methods[0].WaitForReady = false
	*config.Methods[0].MaxResponseMessageBytes = 0
	config.Methods[1].Hedge.NonFatalStatusCodes[0] = codes.Internal
	config.Methods[1].Hedge.MaxAttempts = 0
	retry.MaxAttempts = 0
	retry.PerCode[0].Codes[0] = codes.Internal
	retry.PerCode[0].Codes = nil
	*config.Methods[0].MaxRequestMessageBytes = 0
	config.Budgets[0].Config = nil
	config.RetryThrottling.MaxTokens = 0

	p := set.Lookup("/a.B/C")
	if own := compiled.Of(p).Retry.PerCode[0]; !slices.Contains(own.Codes, codes.Unavailable) || own.Backoff.Initial != time.Second {
		t.Errorf("the settings of a code are %+v", own)
	}
	if h := compiled.Of(set.Lookup("/a.B/D")).Hedge; h.MaxAttempts != 3 || h.NonFatalStatusCodes[0] != codes.Unavailable {
		t.Errorf("the hedging policy is %+v", h)
	}
	if s := compiled.Of(p); !*s.WaitForReady || *s.MaxResponseMessageBytes != 8 || compiled.OfSet(set).Methods[0].Names[0] != "/a.B/C" {
		t.Errorf("the policy is %+v, of %v", s, compiled.OfSet(set).Methods[0].Names)
	}
	if compiled.Of(p).Retry.MaxAttempts != 3 || *compiled.Of(p).MaxRequestMessageBytes != 7 ||
		compiled.OfSet(set).Budgets[0].Config != budget.Default() || compiled.OfSet(set).RetryThrottling.MaxTokens != 10 {
		t.Errorf("%d attempts, %d bytes, %+v, %d tokens; want 3, 7, the default, 10",
			compiled.Of(p).Retry.MaxAttempts, *compiled.Of(p).MaxRequestMessageBytes, compiled.OfSet(set).Budgets[0].Config, compiled.OfSet(set).RetryThrottling.MaxTokens)
	}
}
