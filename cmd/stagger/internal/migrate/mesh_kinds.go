// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
)

const annotation = "retry.linkerd.io/"

func (p *meshPolicy) virtualService(r object) {
	for _, route := range list(at(r, "spec", "http")) {
		retries, ok := at(route, "retries").(object)
		if !ok {
			continue
		}
		e := newEntry()
		for _, match := range list(at(route, "match")) {
			uri, _ := at(match, "uri").(object)
			switch {
			case uri["exact"] != nil:
				e.path(text(uri["exact"]), false)
			case uri["prefix"] != nil:
				e.path(text(uri["prefix"]), true)
			default:
				e.everything("a policy file matches by service and method alone")
			}
		}
		if len(e.names) == 0 {
			e.path("/", true)
		}
		e.timeout = e.duration("timeout", at(route, "timeout"))
		if e.attempts = 3; !e.retries(retries["attempts"]) { // Istio's default is two retries
			continue
		}
		e.perTry = e.duration("perTryTimeout", retries["perTryTimeout"])
		if base := e.duration("backoff", retries["backoff"]); base > 0 {
			e.base, e.max = base, 10*base
		}
		on := text(retries["retryOn"])
		if on == "" {
			on = "connect-failure,refused-stream,unavailable,cancelled"
		}
		e.conditions(on)
		e.unmapped(retries, "stagger's balancer sends a retry elsewhere by itself", "retryRemoteLocalities", "retryIgnorePreviousHosts")
		p.entries = append(p.entries, e)
	}
}

func (p *meshPolicy) destinationRule(r object) {
	traffic := at(r, "spec", "trafficPolicy")
	if most, ok := number(at(traffic, "connectionPool", "http", "maxRetries")); ok {
		p.budget = fmt.Sprintf("concurrent: {percent: 0.0001, min: %v}", most)
		p.head = append(p.head, "maxRetries bounds the retries of a proxy to a host that are in flight. A budget does so for all calls of a process to a target.")
	}
	if budget, ok := at(traffic, "retryBudget").(object); ok {
		p.concurrent(budget["percent"], budget["minRetryConcurrency"])
		if budget["budgetInterval"] != nil {
			p.head = append(p.head, "budgetInterval: not mapped: a concurrent budget counts what is in flight now.")
		}
	}
	if at(traffic, "outlierDetection") != nil {
		p.head = append(p.head, "outlierDetection: not mapped: stagger's balancer avoids for one call the backends that have failed it.")
	}
}

// concurrent sets Envoy's retry budget, with its defaults.
func (p *meshPolicy) concurrent(percent, least any) {
	share, ok := number(percent)
	if !ok {
		share = 20
	}
	floor, ok := number(least)
	if !ok {
		floor = 3
	}
	p.budget = fmt.Sprintf("concurrent: {percent: %v, min: %v}", max(share, 0.0001), floor)
}

// ratio sets a budget that is a share of the calls in a window.
func (p *meshPolicy) ratio(percent, perSecond float64, window time.Duration) {
	if fits := min(max(window, time.Second), time.Minute); fits != window {
		p.head = append(p.head, fmt.Sprintf("The interval %v doesn't fit: a window has 1s to 60s.", window))
		window = fits
	}
	p.budget = fmt.Sprintf("ratio: {percent: %v, minPerSecond: %v, window: %s}", max(percent, 0.0001), perSecond, seconds(window))
	p.head = append(p.head, "Retries that succeed give their cost back, and one after a timeout costs 4: timeoutCost 1 and timeoutBonus 0 count all alike.")
}

func (p *meshPolicy) backendTraffic(r object) {
	constraint, ok := at(r, "spec", "retryConstraint").(object)
	if !ok {
		return
	}
	e := &meshEntry{}
	percent, ok := number(at(constraint, "budget", "percent"))
	if !ok {
		percent = 20
	}
	interval := cmp.Or(e.duration("interval", at(constraint, "budget", "interval")), 10*time.Second)
	count, ok := number(at(constraint, "minRetryRate", "count"))
	if !ok {
		count = 10
	}
	every := cmp.Or(e.duration("minRetryRate.interval", at(constraint, "minRetryRate", "interval")), time.Second)
	p.ratio(percent, count/every.Seconds(), interval)
	p.head = append(p.head, e.comments...)
}

func (p *meshPolicy) serviceProfile(r object) {
	for _, route := range list(at(r, "spec", "routes")) {
		if at(route, "isRetryable") != true {
			continue
		}
		e := newEntry()
		path := regexp.MustCompile(`\\(.)`).ReplaceAllString(text(at(route, "condition", "pathRegex")), "$1")
		if strings.ContainsAny(path, "*+?[(|^$") {
			e.everything(fmt.Sprintf("a policy file cannot name the methods that match %q", path))
		} else {
			e.path(path, false)
		}
		e.attempts = 3
		e.code("UNAVAILABLE")
		e.comment("Linkerd retries each response that counts as failed until the timeout: maxAttempts, codes and backoff are proposals.")
		e.timeout = e.duration("timeout", at(route, "timeout"))
		p.entries = append(p.entries, e)
	}
	if budget, ok := at(r, "spec", "retryBudget").(object); ok {
		ratio, _ := number(budget["retryRatio"])
		least, _ := number(budget["minRetriesPerSecond"])
		e := &meshEntry{}
		p.ratio(ratio*100, least, e.duration("ttl", budget["ttl"]))
		p.head = append(p.head, e.comments...)
	}
}

func annotated(r object) bool {
	notes, _ := at(r, "metadata", "annotations").(object)
	for key := range notes {
		if strings.HasPrefix(key, annotation) {
			return true
		}
	}
	return false
}

// linkerd reads the annotations of a Service or GRPCRoute.
func (p *meshPolicy) linkerd(r object) {
	notes, _ := at(r, "metadata", "annotations").(object)
	on := text(notes[annotation+"grpc"])
	if on == "" {
		return
	}
	e := newEntry()
	for _, rule := range list(at(r, "spec", "rules")) {
		for _, match := range list(at(rule, "matches")) {
			service, method := text(at(match, "method", "service")), text(at(match, "method", "method"))
			if kind := text(at(match, "method", "type")); kind != "" && kind != "Exact" || service == "" {
				e.everything("a policy file matches by full names alone")
				continue
			}
			e.named(service, method)
		}
	}
	if len(e.names) == 0 {
		e.everything("the annotations are those of the whole " + text(r["kind"]))
	}
	if !e.retries(notes[annotation+"limit"]) {
		return
	}
	e.conditions(on)
	e.perTry = e.duration(annotation+"timeout", notes[annotation+"timeout"])
	e.timeout = e.duration("timeout.linkerd.io/request", notes["timeout.linkerd.io/request"])
	e.comment("The backoff is a proposal.")
	e.unmapped(notes, "a gRPC client sees codes of gRPC", annotation+"http")
	e.unmapped(notes, "a policy file has no such timeout", "timeout.linkerd.io/response", "timeout.linkerd.io/idle")
	p.entries = append(p.entries, e)
}

// envoy finds routes and clusters at any depth.
func (p *meshPolicy) envoy(v any) {
	switch v := v.(type) {
	case []any:
		for _, inner := range v {
			p.envoy(inner)
		}
	case object:
		if policy, ok := v["retry_policy"].(object); ok {
			p.envoyRoute(object{}, v, policy)
		} else if policy, ok := at(v, "route", "retry_policy").(object); ok {
			match, _ := v["match"].(object)
			p.envoyRoute(match, v["route"], policy)
			return
		}
		if budget, ok := v["retry_budget"].(object); ok {
			p.concurrent(at(budget, "budget_percent", "value"), budget["min_retry_concurrency"])
		}
		for _, key := range []string{"static_resources", "listeners", "filter_chains", "filters", "typed_config", "route_config", "virtual_hosts", "routes", "clusters", "circuit_breakers", "thresholds"} {
			if inner, ok := v[key]; ok {
				p.envoy(inner)
			}
		}
	}
}

func (p *meshPolicy) envoyRoute(match object, route any, policy object) {
	e := newEntry()
	switch {
	case match["path"] != nil:
		e.path(text(match["path"]), false)
	case match["prefix"] != nil:
		e.path(text(match["prefix"]), true)
	case match["path_separated_prefix"] != nil:
		e.path(text(match["path_separated_prefix"]), false)
	case len(match) > 0:
		e.everything("a policy file matches by service and method alone")
	default:
		e.everything("the policy is not that of a route")
	}
	if e.timeout = e.duration("timeout", at(route, "timeout")); e.timeout == 0 && at(route, "timeout") == nil {
		e.comment("Envoy's route timeout, 15s when absent, isn't taken over: the caller's deadline holds.")
	}
	if !e.retries(policy["num_retries"]) {
		return
	}
	e.conditions(text(policy["retry_on"]))
	e.perTry = e.duration("per_try_timeout", policy["per_try_timeout"])
	if base := e.duration("base_interval", at(policy, "retry_back_off", "base_interval")); base > 0 {
		e.base, e.max = base, 10*base
	}
	if longest := e.duration("max_interval", at(policy, "retry_back_off", "max_interval")); longest > 0 {
		e.max = longest
	}
	e.unmapped(policy, "a server that names a delay is obeyed (maxPushback)", "rate_limited_retry_back_off")
	e.unmapped(policy, "a gRPC client sees codes of gRPC", "retriable_status_codes", "retriable_headers", "retriable_request_headers")
	e.unmapped(policy, "stagger's balancer sends a retry elsewhere by itself", "retry_priority", "retry_host_predicate", "host_selection_retry_max_attempts")
	e.unmapped(policy, "a policy file has no such timeout", "per_try_idle_timeout")
	p.entries = append(p.entries, e)
}
