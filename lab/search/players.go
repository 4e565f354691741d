// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The names of special players: those to compare with, or to judge first.
const (
	noRetries     = "no retries"
	grpcPlayer    = "gRPC throttled"
	unbound       = "4 attempts"
	defaultPlayer = "default"
)

// players are all players. The first is the reference.
var players = []string{noRetries, grpcPlayer, unbound, defaultPlayer, "quick start", "hedging", "admission"}

// drawPolicy draws a policy, which the default player uses with the default budget, but no time that a Retrier warns of because most
// calls take longer. It returns the policy files of these players, and the players as variants of the scenario.
func (d *draft) drawPolicy(names []string) (files object, variants []object) {
	codes := [][]string{{"UNAVAILABLE"}, {"UNAVAILABLE", "RESOURCE_EXHAUSTED"}, {"UNAVAILABLE", "ABORTED"}}[d.one("codes", 0.4, 0.4, 0.2)]
	attempts, backoff := 2+int(4*d.part("attempts")), d.span("backoff", 20*time.Millisecond, 250*time.Millisecond)
	onlyLast := len(d.services) > 1 && d.hit("only the last hop", 0.3)
	// After failures alone, also in parallel to a slow attempt, or as a hedge.
	const inParallel, nearMedian, nearP99 = 1, 2, 3
	policy := d.one("policy", 0.48, 0.32, 0.06, 0.14)
	over, near := tidy(d.log("attempt timeout", 1.1, 12)), d.even("near the median", 1.05, 1.6)
	d.say("%s", []string{"retries", fmt.Sprint("attempt timeout of medians: ", over), "hedges near the median", "hedges at p99"}[policy])
	retries := func(attempts int, more object) object {
		r := object{
			"maxAttempts": attempts, "initialBackoff": seconds(backoff), "maxBackoff": seconds(neat(16 * backoff)),
			"backoffMultiplier": 2, "retryableStatusCodes": codes,
		}
		maps.Copy(r, more)
		return object{"retryPolicy": r}
	}
	hedges := func(attempts int, delay time.Duration) object {
		return object{"hedgingPolicy": object{"maxAttempts": attempts, "hedgingDelay": seconds(delay), "nonFatalStatusCodes": codes}}
	}
	entry := func(name string, k *kind) object {
		within := func(t time.Duration) time.Duration { return neat(min(t, k.deadline*2/3)) }
		switch {
		case onlyLast && k.service != "shop":
			return object{}
		case name == grpcPlayer: // its jitter, and below the throttling of gRFC A6's example
			return retries(4, object{"jitter": "PROPORTIONAL"})
		case name == unbound:
			return retries(4, object{"jitter": "PROPORTIONAL", "budget": "NONE"})
		case name == "quick start": // the first example of README.md without its timeout
			return retries(4, object{"initialBackoff": "0.1s", "maxBackoff": "1s", "retryableStatusCodes": []string{"UNAVAILABLE"}})
		case name == "hedging": // as docs/hedging.md advises
			return hedges(2, within(k.p99))
		case policy == nearMedian:
			return hedges(min(attempts, 3), within(time.Duration(float64(k.median)*near)))
		case policy == nearP99:
			return hedges(min(attempts, 3), within(max(k.p99, k.median*6/5)))
		case policy == inParallel:
			return retries(attempts, object{"perAttemptTimeout": seconds(within(time.Duration(float64(k.median) * over)))})
		default:
			return retries(attempts, nil)
		}
	}
	files = object{}
	for _, name := range players {
		if !slices.Contains(names, name) {
			continue
		}
		v := object{"name": name, "policy": name}
		if variants = append(variants, v); name == noRetries {
			v["policy"] = "NONE"
			continue
		}
		if name == grpcPlayer || name == unbound { // no chain guard, and it learns nothing
			v["guard"], v["blind"] = false, true
		}
		entries := make([]object, 0, len(d.kinds))
		for i := range d.kinds {
			e := entry(name, &d.kinds[i])
			service, method, _ := strings.Cut(d.kinds[i].method[1:], "/")
			e["name"] = []object{{"service": service, "method": method}}
			if name == "admission" {
				e["admission"] = "REFUSE"
			}
			entries = append(entries, e)
		}
		file := object{"methodConfig": entries}
		if files[name] = file; name == grpcPlayer {
			file["retryThrottling"] = object{"maxTokens": 10, "tokenRatio": 0.1}
		}
	}
	return files, variants
}

// seconds returns a time in the form of policy files.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }
