// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/cmd/stagger/internal/cli"
	"github.com/stagger-go/stagger/internal/tools/must"
)

const strict = `maxAttemptsLimit: 6
budgets: [{name: reads, ratio: {percent: 10, minPerSecond: 5, window: 10s, timeoutCost: 4, timeoutBonus: 3}}]
methodConfig:
- name: [{service: a.B, method: C}, {service: a.B, method: D}]
  timeout: 5s
  transparentRetry: DENY
  refusedRetry: DENY
  admission: REFUSE
  retryPolicy:
    maxAttempts: 3
    initialBackoff: 0.1s
    maxBackoff: 1s
    backoffMultiplier: 2
    retryableStatusCodes: [UNAVAILABLE, ABORTED]
    perAttemptTimeout: 1s
    onAttemptTimeout: RETRY
    chain: ONCE
    maxPushback: 60s
    minAttemptTime: 0.01s
    maxConnectionWait: 2s
    budget: reads
    perCode: [{codes: [ABORTED], maxAttempts: 2, initialBackoff: 0.5s, onlyWithServerDelay: true}]
- name: [{service: a.S}]
  retryPolicy: {commitOn: HEADERS, maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
- name: [{service: a.H, method: M}]
  hedgingPolicy: {maxAttempts: 2, hedgingDelay: 0.2s, hedgingQuantile: {quantile: 0.99, min: 0.01s}, nonFatalStatusCodes: [UNAVAILABLE]}
`

// against returns the command's output for a text, compared with an older one.
func against(t *testing.T, before, after string, args ...string) (string, error) {
	t.Helper()
	old := filepath.Join(t.TempDir(), "old.yaml")
	must.Do(t, os.WriteFile(old, []byte(before), 0o600))
	got, err := run(t, after, append(args, "--against", old)...)
	return strings.ReplaceAll(got, old, "old.yaml"), err
}

// TestAgainst changes one thing, in both directions: a change that is laxer one way causes no warning the other way.
func TestAgainst(t *testing.T) {
	t.Parallel()
	const both, safe = " for /a.B/C, /a.B/D", "methodConfig[1].idempotency"
	entry, reads := "methodConfig[0].", "budgets[0].ratio."
	retry := entry + "retryPolicy."
	hedge := "methodConfig[2].hedgingPolicy."
	for _, row := range []struct{ from, to, want string }{
		{"maxAttemptsLimit: 6", "maxAttemptsLimit: 7", "1:19: maxAttemptsLimit: 7: is laxer than before (6) for all methods"},
		{"maxAttemptsLimit: 6", "maxAttemptsLimit: 6\nmaxWaiting: 20000", "maxWaiting: 20000: is laxer than before (10000) for all methods"},
		{"timeout: 5s", "timeout: 7s", entry + "timeout: 7s: is laxer than before (5s)" + both},
		{"  timeout: 5s\n", "", entry + "timeout: none: is laxer than before (5s)" + both},
		{"refusedRetry: DENY", "refusedRetry: ALLOW", ""}, // the methods are idempotent
		{"admission: REFUSE", "admission: AUTO", entry + "admission: AUTO: is laxer than before (REFUSE)" + both},
		{"admission: REFUSE", "admission: NONE", entry + "admission: NONE: is laxer than before (REFUSE)" + both},
		{"maxAttempts: 3\n", "maxAttempts: 5\n", retry + "maxAttempts: 5: is laxer than before (3)" + both},
		{"initialBackoff: 0.1s\n", "initialBackoff: 0.05s\n", retry + "initialBackoff: 50ms: is laxer than before (100ms)" + both},
		{"maxBackoff: 1s\n", "maxBackoff: 0.9s\n", retry + "maxBackoff: 900ms: is laxer than before (1s)" + both},
		{"backoffMultiplier: 2\n", "backoffMultiplier: 1.5\n", retry + "backoffMultiplier: 1.5: is laxer than before (2)" + both},
		{"maxBackoff: 1s\n", "maxBackoff: 1s\n    jitter: NONE\n", retry + "jitter: NONE: is laxer than before (FULL)" + both},
		{"[UNAVAILABLE, ABORTED]", "[UNAVAILABLE, ABORTED, INTERNAL]", retry + "retryableStatusCodes: INTERNAL: is laxer than before (not listed)" + both},
		{"perAttemptTimeout: 1s", "perAttemptTimeout: 0.5s", retry + "perAttemptTimeout: 500ms: is laxer than before (1s)" + both},
		{"onAttemptTimeout: RETRY", "onAttemptTimeout: HEDGE", retry + "onAttemptTimeout: HEDGE: is laxer than before (RETRY)" + both},
		{"maxPushback: 60s", "maxPushback: 90s", retry + "maxPushback: 1m30s: is laxer than before (1m0s)" + both},
		{"minAttemptTime: 0.01s", "minAttemptTime: 0.005s", retry + "minAttemptTime: 5ms: is laxer than before (10ms)" + both},
		{"maxConnectionWait: 2s", "maxConnectionWait: 3s", retry + "maxConnectionWait: 3s: is laxer than before (2s)" + both},
		{"commitOn: HEADERS", "commitOn: SEEN", "methodConfig[1].retryPolicy.commitOn: SEEN: is laxer than before (HEADERS) for /a.S/"},
		{"chain: ONCE", "chain: ALLOW", retry + "chain: ALLOW: is laxer than before (ONCE)" + both},
		{"chain: ONCE", "chain: SUPPRESS", "stricter"},
		{"budget: reads", "budget: NONE", retry + "budget: NONE: is laxer than before (reads)" + both},
		{"percent: 10", "percent: 20", "2:42: " + reads + "percent: 20: is laxer than before (10)" + both},
		{"minPerSecond: 5", "minPerSecond: 6", reads + "minPerSecond: 6: is laxer than before (5)" + both},
		{"window: 10s", "window: 20s", reads + "window: 20s: is laxer than before (10s)" + both},
		{"timeoutBonus: 3", "timeoutBonus: 4", reads + "timeoutBonus: 4: is laxer than before (3)" + both},
		{"name: reads, ratio", "name: reads, scope: SERVICE, ratio", "budgets[0].scope: SERVICE: is laxer than before (TARGET)" + both},
		{"maxAttempts: 2, initialBackoff: 0.5s", "maxAttempts: 3, initialBackoff: 0.5s", retry + "perCode: maxAttempts 3 after ABORTED: is laxer than before (2)" + both},
		{"initialBackoff: 0.5s", "initialBackoff: 0.4s", retry + "perCode: initialBackoff 400ms after ABORTED: is laxer than before (500ms)" + both},
		{", onlyWithServerDelay: true", "", retry + "perCode: onlyWithServerDelay false after ABORTED: is laxer than before (true)" + both},
		{
			"    budget: reads", "    codeOverrides: [{codes: [INTERNAL], as: UNAVAILABLE}]\n    budget: reads",
			retry + "codeOverrides: INTERNAL counts as UNAVAILABLE: is laxer than before (not retried as that)" + both,
		},
		{"[{service: a.S}]", "[{service: a.S}]\n  idempotency: ASSUME", safe + ": idempotent: is laxer than before (idempotent if the .proto declares it) for /a.S/"},
		{"[{service: a.S}]\n", "[{service: a.S}]\n  idempotencyKey: {header: x-key}\n", "methodConfig[1].idempotencyKey: idempotent with a key: is laxer than before (idempotent if the .proto declares it) for /a.S/"},
		{"[{service: a.S}]", "[{service: a.S}, {service: a.S, method: Pay}]", "methodConfig[1].name: idempotent: is laxer than before (idempotent if the .proto declares it) for /a.S/Pay"},
		{"[{service: a.S}]", "[{service: a.S}]\n  idempotency: NONE", "stricter"},
		{"quantile: 0.99", "quantile: 0.9", hedge + "hedgingQuantile.quantile: 0.9: is laxer than before (0.99) for /a.H/M"},
		{"hedgingDelay: 0.2s", "hedgingDelay: 0.1s", hedge + "hedgingDelay: 100ms: is laxer than before (200ms) for /a.H/M"},
		{", hedgingQuantile: {quantile: 0.99, min: 0.01s}", "", hedge + "hedgingQuantile: none: is laxer than before (0.99) for /a.H/M"},
		{"nonFatalStatusCodes: [UNAVAILABLE]", "nonFatalStatusCodes: [UNAVAILABLE, ABORTED]", hedge + "nonFatalStatusCodes: ABORTED: is laxer than before (not listed) for /a.H/M"},
		{"name: [{service: a.H, method: M}]\n", "name: [{service: a.H, method: M}, {service: a.H, method: N}]\n", "methodConfig[2].hedgingPolicy: up to 2 attempts: is laxer than before (1 attempt) for /a.H/N"},
	} {
		t.Run(row.to, func(t *testing.T) {
			t.Parallel()
			after := strings.Replace(strict, row.from, row.to, 1)
			if after == strict {
				t.Fatalf("the file does not have %q", row.from)
			}
			ways := [][2]string{{strict, after}, {after, strict}}
			want := []string{row.want, ""}
			if row.want == "stricter" {
				want[0] = ""
				ways, want = ways[:1], want[:1]
			}
			for i, way := range ways {
				got, err := against(t, way[0], way[1])
				if row.want == "stricter" || want[i] == "" {
					if strings.Contains(got, "laxer") || err != nil {
						t.Errorf("way %d: %v\n%s\nwant nothing laxer", i, err, got)
					}
					continue
				}
				if strings.Count(got, " is laxer ") != 1 || !strings.Contains(got, want[i]+"\n") || err == nil || err.Error() != "1 change makes the policy laxer" {
					t.Errorf("%v\n%s\nwant\n%s", err, got, want[i])
				}
			}
		})
	}
}

const plain = `methodConfig:
- name: [{service: a.B, method: C}]
  retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}
`

// TestAgainst_Files changes more than one key of one entry.
func TestAgainst_Files(t *testing.T) {
	t.Parallel()
	const budgets = "budgets: [{name: x, %}]\n"
	paid := func(budget string) string {
		return strings.Replace(budgets, "%", budget, 1) + strings.Replace(plain, "{maxAttempts", "{budget: x, maxAttempts", 1)
	}
	throttled := "retryThrottling: {maxTokens: 10, tokenRatio: 0.1}\n" + plain
	undeclared := strings.ReplaceAll(plain, ", method: C", "")
	hedging, _, _ := strings.Cut(strings.Replace(plain, "retryPolicy", "hedgingPolicy", 1), "{maxAttempts")
	named := "policies: [{name: reads, retryPolicy: {maxAttempts: 3, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [UNAVAILABLE]}}]\n" +
		"methodConfig: [{name: [{service: a.B, method: C}], policy: reads}]\n"
	for name, row := range map[string]struct{ before, after, want string }{
		"same":        {plain, plain, ""},
		"comments":    {plain, "# a comment\n" + plain, ""},
		"no policies": {"{}", plain, "warning: retry.yaml:3:16: methodConfig[0].retryPolicy: up to 3 attempts: is laxer than before (1 attempt) for /a.B/C"},
		"all gone":    {plain, "{}", ""},
		"trial":       {"mode: OFF\n" + plain, "mode: OBSERVE\n" + plain, ""},
		"enforced":    {"mode: OBSERVE\n" + plain, "percent: 5\n" + plain, "retry.yaml:1:1: mode: sent for 5 % of the calls: is laxer than before (sent for 0 % of the calls)"},
		"narrower":    {undeclared, plain, "methodConfig[0].name: idempotent: is laxer than before (idempotent if the .proto declares it) for /a.B/C"},
		"wider": {
			plain, plain + strings.Replace(strings.TrimPrefix(undeclared, "methodConfig:\n"), "{service: a.B}", "{}", 1),
			"methodConfig[1].retryPolicy: up to 3 attempts: is laxer than before (1 attempt) for /\n",
		},
		"named policies": {named, strings.Replace(named, "maxAttempts: 3", "maxAttempts: 4", 1), "retry.yaml:1:53: methodConfig[0].retryPolicy.maxAttempts: 4: is laxer"},
		"hedges": {
			plain, hedging + "{maxAttempts: 3, hedgingDelay: 0.1s, nonFatalStatusCodes: [UNAVAILABLE]}\n",
			"methodConfig[0].hedgingPolicy: attempts in parallel: is laxer than before (retries)",
		},
		"transparent":     {"transparentRetry: DENY\n" + undeclared, undeclared, "methodConfig[0].transparentRetry: ALLOW: is laxer than before (DENY) for /a.B/"},
		"refused":         {"refusedRetry: DENY\n" + undeclared, undeclared, "methodConfig[0].refusedRetry: ALLOW: is laxer than before (DENY) for /a.B/"},
		"no throttle":     {throttled, plain, "methodConfig[0].retryPolicy.budget: the default, of another kind: is laxer than before (retryThrottling)"},
		"throttle":        {throttled, strings.Replace(throttled, "0.1}", "0.2}", 1), "retry.yaml:1:46: retryThrottling.tokenRatio: 0.2: is laxer than before (0.1)"},
		"another budget":  {plain, paid("ratio: {percent: 20}"), "methodConfig[0].retryPolicy.budget: x, whose ratio.percent is 20: is laxer than before (the default, 10)"},
		"concurrent":      {paid("concurrent: {min: 3}"), paid("concurrent: {min: 4}"), "budgets[0].concurrent.min: 4: is laxer than before (3)"},
		"refund":          {paid("refund: {retryCost: 5}"), paid("refund: {retryCost: 4}"), "budgets[0].refund.retryCost: 4: is laxer than before (5)"},
		"own throttle":    {paid("throttle: {maxTokens: 9, tokenRatio: 1}"), paid("throttle: {maxTokens: 10, tokenRatio: 1}"), "budgets[0].throttle.maxTokens: 10: is laxer than before (9)"},
		"no fleet":        {paid("ratio: {fleet: {name: f, perSecond: 50}}"), paid("ratio: {}"), "budgets[0].ratio.fleet: a reserve for each client: is laxer than before (the pool f)"},
		"greater fleet":   {paid("ratio: {fleet: {name: f, perSecond: 50}}"), paid("ratio: {fleet: {name: f, perSecond: 60}}"), "is laxer than before (50)"},
		"limited already": {plain, "maxAttemptsLimit: 3\n" + strings.Replace(plain, "maxAttempts: 3", "maxAttempts: 9", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := against(t, row.before, row.after)
			if row.want == "" && (strings.Contains(got, "laxer") || err != nil) {
				t.Errorf("%v\n%s\nwant nothing laxer", err, got)
			}
			if row.want != "" && (strings.Count(got, " is laxer ") != 1 || !strings.Contains(got, row.want) || err == nil) {
				t.Errorf("%v\n%s\nwant\n%s", err, got, row.want)
			}
		})
	}
}

// TestAgainst_Descriptors has a method that an entry for its service does not name.
func TestAgainst_Descriptors(t *testing.T) {
	t.Parallel()
	before := strings.ReplaceAll(plain, "{service: a.B, method: C}", "{service: acme.orders.v1.OrderService}")
	for level, want := range map[string]int{"NONE": 3, "DECLARED": 2} {
		old := strings.Replace(before, "  retryPolicy", "  idempotency: "+level+"\n  retryPolicy", 1)
		got, _ := against(t, old, strings.Replace(old, level, "ASSUME", 1), "--descriptors", "../../../../examples/orders/orders.binpb")
		if strings.Contains(got, "/CancelOrder") != (level == "NONE") || !strings.Contains(got, "/CreateOrder") || want < strings.Count(got, " is laxer ") {
			t.Errorf("from %s:\n%s\nwant CancelOrder, which its .proto declares, only from NONE", level, got)
		}
	}
}

func TestAgainst_Formats(t *testing.T) {
	t.Parallel()
	after := strings.Replace(plain, "maxAttempts: 3", "maxAttempts: 4", 1)
	got, err := against(t, plain, after, "--format", "github")
	if err == nil || got != "::warning file=retry.yaml,line=3,col=30::methodConfig[0].retryPolicy.maxAttempts: 4: is laxer than before (3) for /a.B/C\n" {
		t.Errorf("%v\n%s", err, got)
	}
	got, err = against(t, plain, after, "--format", "json")
	var list []struct {
		Severity string `json:"severity"`
	}
	if jsonErr := json.Unmarshal([]byte(got), &list); jsonErr != nil || err == nil || len(list) != 1 || list[0].Severity != "warning" {
		t.Errorf("%v, %v\n%s", err, jsonErr, got)
	}
}

// TestAgainst_Folder compares with the files of the same paths.
func TestAgainst_Folder(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	for path, text := range map[string]string{
		"a/retry.yaml": plain, "b/retry.yaml": plain, "new.yaml": plain,
		"main/a/retry.yaml": plain, "main/b/retry.yaml": strings.Replace(plain, "maxAttempts: 3", "maxAttempts: 2", 1),
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	_, err := run(t, plain, "--against", "main", "a/retry.yaml", "b/retry.yaml", "new.yaml")
	if cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("%v; want that the last file lies outside of the folder", err)
	}
	got, err := lintFiles("--against", "main", filepath.Join("a", "retry.yaml"), filepath.Join("b", "retry.yaml"), "new.yaml")
	if err == nil || strings.Count(got, " is laxer ") != 1 || !strings.Contains(got, "warning: "+filepath.Join("b", "retry.yaml")+":3:30: ") || !strings.Contains(got, "note: new.yaml: is new") {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := lintFiles("--against", "main/a/retry.yaml", "a/retry.yaml", "b/retry.yaml"); cli.ExitCode(err) != cli.ExitUsage {
		t.Errorf("%v; want that one file is not compared with two", err)
	}
}

// TestAgainst_Unreadable has an unreadable old file, which is an error and does not mean "nothing became laxer".
func TestAgainst_Unreadable(t *testing.T) {
	t.Parallel()
	if got, err := against(t, bad, plain); err == nil || strings.Count(got, "error: old.yaml:3:") != 2 {
		t.Errorf("%v\n%s", err, got)
	}
	if got, err := run(t, plain, "--against", "none.yaml"); err == nil || !strings.Contains(got, "error: none.yaml: cannot be read") {
		t.Errorf("%v\n%s", err, got)
	}
}
