// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stagger-go/stagger/internal/document"
	"github.com/stagger-go/stagger/internal/tried"
)

// balancing returns the file's loadBalancingConfig as JSON, if it names the policy of package balancer at any depth: a Retrier
// passes it to connections with its DialOptions. Otherwise it returns "", and the key is for gRPC alone.
func (c Config) balancing() string {
	if !namesElsewhere(c.balancers()) {
		return ""
	}
	return string(c.channel().LoadBalancingConfig)
}

// namesElsewhere reports whether the policy is named, at any depth.
func namesElsewhere(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if key == tried.Balancer || namesElsewhere(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, namesElsewhere)
	}
	return false
}

// checkElsewhere refuses the policy without a child, at any depth in value.
func checkElsewhere(report *document.Report, field string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			inside := document.Under(field, key)
			if key == tried.Balancer {
				checkChild(report, inside, v[key])
			}
			checkElsewhere(report, inside, v[key])
		}
	case []any:
		for i, entry := range v {
			checkElsewhere(report, document.Item(field, i), entry)
		}
	}
}

// oneBalancing is the message for an invalid entry in a list of load balancing policies.
const oneBalancing = "must be a map with one key, a load balancing policy, such as {round_robin: {}}"

func checkChild(report *document.Report, field string, value any) {
	config, ok := value.(map[string]any)
	if !ok {
		return // reported already, or an error of the outer policy
	}
	const want = "must list the policy that picks, such as [{round_robin: {}}]; of several, gRPC takes the first that the program knows"
	list, _ := config["childPolicy"].([]any)
	if len(list) == 0 {
		report.Errorf(document.Under(field, "childPolicy"), nil, want)
	}
	for i, one := range list {
		if entry, ok := one.(map[string]any); !ok || len(entry) != 1 {
			report.Errorf(document.Item(document.Under(field, "childPolicy"), i), nil, oneBalancing)
		}
	}
}

// lintElsewhere warns of the policy in a place that gRPC never reaches.
func lintElsewhere(report *document.Report, c Config) {
	list := c.balancers()
	for i, one := range list {
		entry, _ := one.(map[string]any)
		for name := range entry {
			if known := name == "round_robin" || name == "pick_first"; known && namesElsewhere(list[i+1:]) {
				report.Warnf(document.Item(balancingKey, i), name, "gRPC takes the first policy of the list that it knows, and so never %s behind it; list that first", tried.Balancer)
				return
			}
		}
	}
}

// needsElsewhere reports whether a client without package balancer finds no policy in the list, and so refuses the whole
// config.
func (c Config) needsElsewhere() bool {
	list := c.balancers()
	return len(list) > 0 && !slices.ContainsFunc(list, func(entry any) bool { return !namesElsewhere(entry) })
}

// lintFirstRetry warns of immediate first retries that may go back to the backend that has just failed.
func lintFirstRetry(report *document.Report, path string, r RetrySpec, c Config) {
	if r.FirstRetryAtOnce && c.balancing() == "" {
		report.Warnf(path+".firstRetry", nil, "a retry at once may go to the backend that has just failed; "+
			"let it go to another one (loadBalancingConfig: [{%s: {childPolicy: [{round_robin: {}}]}}]), or remove it", tried.Balancer)
	}
}

// firstRetryAdvice notes where a first retry can be immediate, because it goes to another backend.
func firstRetryAdvice(report *document.Report, c Config) (list []Diagnostic) {
	if c.balancing() == "" {
		return nil
	}
	for i, m := range c.Methods {
		path := fmt.Sprintf("methodConfig[%d].retryPolicy", i)
		if m.Retry == nil || report.Written(path+".firstRetry") {
			continue
		}
		d := locate(report, Diagnostic{Severity: SeverityNote, Field: path})
		d.Value = ""
		d.Message = "retries go to another backend, so that the first need not wait: firstRetry AT_ONCE answers calls sooner while one backend " +
			"fails or hangs, and costs some success where all fail for a moment; BACKOFF keeps the wait, and says so"
		list = append(list, d)
	}
	return list
}
