// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/policy"
)

// TestMigrate_Mesh has configurations of proxies: the resulting policies, and the comments on the rest.
func TestMigrate_Mesh(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		in       string
		want     string // of the policies
		budget   string
		comments []string
	}{
		"Istio": {
			`{apiVersion: networking.istio.io/v1, kind: VirtualService, spec: {http: [
  {match: [{uri: {exact: /a.B/C}}, {uri: {prefix: /a.D/}}], timeout: 5s, retries: {attempts: 3, perTryTimeout: 500ms, retryOn: "unavailable,reset,retriable-4xx", backoff: 50ms, retryRemoteLocalities: true}},
  {match: [{uri: {exact: /a.B/Never}}], retries: {attempts: 0}}]}}
---
{kind: DestinationRule, spec: {trafficPolicy: {retryBudget: {percent: 25, minRetryConcurrency: 4}, outlierDetection: {}}}}`,
			"/a.B/C 4 [Unavailable] 50ms 500ms 500ms true 5s mesh; /a.D/ 4 [Unavailable] 50ms 500ms 500ms true 5s mesh", "{25 4}",
			[]string{"retriable-4xx: not mapped", "retryRemoteLocalities: not mapped", "outlierDetection: not mapped", "reset: gRPC reports it"},
		},
		"Istio's defaults": {`{kind: VirtualService, spec: {http: [{retries: {}}]}}`, "/ 3 [Canceled Unavailable] 25ms 250ms 0s false 0s ", "", []string{"For all methods"}},
		"Istio's limit":    {`{kind: DestinationRule, spec: {trafficPolicy: {connectionPool: {http: {maxRetries: 7}}}}}`, "", "{0.0001 7}", []string{"maxRetries bounds"}},
		"Envoy": {
			`{"virtual_hosts": [{"routes": [{"match": {"path": "/a.B/C"}, "route": {"timeout": "2s", "retry_policy":
  {"retry_on": "resource-exhausted, 5xx", "num_retries": 9, "per_try_timeout": "0.2s", "retry_back_off": {"base_interval": "0.1s", "max_interval": "3s"}, "retriable_status_codes": [503]}}}]}],
  "clusters": [{"circuit_breakers": {"thresholds": [{"retry_budget": {}}]}}]}`,
			"/a.B/C 10 [ResourceExhausted Unavailable] 100ms 3s 200ms true 2s mesh", "{20 3}",
			[]string{"9 retries: at most 4", "retriable_status_codes: not mapped", "5xx: gRPC reports"},
		},
		"Envoy's prefix": {
			`{"routes": [{"match": {"prefix": "/a.B/Get"}, "route": {"retry_policy": {"retry_on": "internal"}}}]}`,
			"/ 2 [Internal] 25ms 250ms 0s false 0s ", "",
			[]string{`cannot name methods that begin with "/a.B/Get"`, "15s when absent"},
		},
		"Gateway API":            {`{kind: XBackendTrafficPolicy, spec: {retryConstraint: {budget: {percent: 15, interval: 20s}, minRetryRate: {count: 6, interval: 2s}}}}`, "", "{15 3 20s 4 3 0 }", []string{"give their cost back"}},
		"Gateway API's defaults": {`{kind: BackendTrafficPolicy, spec: {retryConstraint: {budget: {interval: 5m}}}}`, "", "{20 10 1m0s 4 3 0 }", []string{"The interval 5m0s doesn't fit"}},
		"ServiceProfile": {`{kind: ServiceProfile, spec: {routes: [{condition: {method: POST, pathRegex: /a\.B/C}, isRetryable: true, timeout: 300ms}, {condition: {pathRegex: /a\.B/D}}],
  retryBudget: {retryRatio: 0.25, minRetriesPerSecond: 10, ttl: 10s}}}`, "/a.B/C 3 [Unavailable] 25ms 250ms 0s false 300ms mesh", "{25 10 10s 4 3 0 }", []string{"proposals"}},
		"annotations": {`{kind: GRPCRoute, metadata: {annotations: {retry.linkerd.io/grpc: "unavailable,internal", retry.linkerd.io/limit: "2", retry.linkerd.io/timeout: 400ms, timeout.linkerd.io/response: 1s}},
  spec: {rules: [{matches: [{method: {service: a.B, method: C}}]}]}}`, "/a.B/C 3 [Internal Unavailable] 25ms 250ms 400ms true 0s ", "", []string{"timeout.linkerd.io/response: not mapped", "declares it idempotent"}},
		"Service": {`{kind: Service, metadata: {annotations: {retry.linkerd.io/grpc: unavailable}}}`, "/ 2 [Unavailable] 25ms 250ms 0s false 0s ", "", []string{"those of the whole Service"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, row.in, "-")
			if err != nil {
				t.Fatal(err)
			}
			set, err := policy.Parse("retry.yaml", []byte(out))
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var got []string
			for _, p := range set.Policies() {
				s, r := p.Spec(), p.Spec().Retry
				got = append(got, fmt.Sprint(p.Name(), " ", r.MaxAttempts, " ", r.Codes, " ", r.Backoff.Initial, " ", r.Backoff.Max, " ", r.PerAttemptTimeout, " ", r.CancelOnTimeout, " ", s.Timeout, " ", r.Budget))
			}
			if strings.Join(got, "; ") != row.want {
				t.Errorf("policies\n%q\nwant\n%q\n%s", strings.Join(got, "; "), row.want, out)
			}
			budget := ""
			for _, b := range set.Config().Budgets {
				budget = fmt.Sprint(b.Config)
			}
			if budget != row.budget {
				t.Errorf("budget %s; want %s\n%s", budget, row.budget, out)
			}
			for _, want := range row.comments {
				if !strings.Contains(out, want) {
					t.Errorf("lacks %q:\n%s", want, out)
				}
			}
		})
	}
}

func TestMigrate_MeshWithoutRetries(t *testing.T) {
	t.Parallel()
	for _, in := range []string{`{kind: VirtualService, spec: {http: [{timeout: 5s}]}}`, `{kind: GRPCRoute}`} {
		if out, err := run(t, in, "-"); err == nil || !strings.Contains(err.Error(), "has no settings for retries") || out != "" {
			t.Errorf("%q, %v", out, err)
		}
	}
	if out, err := run(t, `{kind: VirtualService, spec: {http: [{timeout: 5h, retries: {retryOn: unavailable, perTryTimeout: -1s}}]}}`, "-"); err != nil || !strings.Contains(out, "perTryTimeout: -1s: not mapped") {
		t.Errorf("%s, %v", out, err)
	}
}
