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

// The names of players that are judged, or that others are compared with.
const (
	noRetries     = "no retries"
	floor         = "no retries again"
	grpcThrottled = "gRPC throttled"
	grpcPlain     = "gRPC unthrottled"
	unbound       = "no budget"
	defaultPlayer = "default"
)

// ownBudget is the budget of a player with another bucket.
const ownBudget = "own"

// allPlayers are all players but the neighbours of the default. The first is the one that harm is measured against.
var allPlayers = []string{noRetries, floor, grpcThrottled, grpcPlain, unbound, defaultPlayer, "quick start", "hedging", "admission"}

// withoutKeys are the default without each number of its bucket: they show what each is for.
var withoutKeys = []string{"size=0", "perSuccess=0", "slowCost=1", "refund=0", "refundSize=0"}

// bucketOf returns the numbers in which the bucket of a player differs from the default's, or nil. Such a player is a neighbour of the
// default: it is called by them, as "slowCost=2" or "refund=1+refundSize=8".
func bucketOf(name string) object {
	bucket := object{}
	for part := range strings.SplitSeq(name, "+") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			bucket[key] = n
		} else {
			bucket[key] = value // a time
		}
	}
	return bucket
}

// inOrder returns the names of players in the order of the tables: the neighbours come last.
func inOrder(names []string) (list []string) {
	for _, name := range allPlayers {
		if slices.Contains(names, name) {
			list = append(list, name)
		}
	}
	for _, name := range names {
		if bucketOf(name) != nil && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// playersOf returns those of the players that play a set: at least the ones with which the others are compared.
func playersOf(of set, names []string) []string {
	if of.helps() {
		never := []string{floor, "quick start", "hedging", "admission"}
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(never, name) })
		return inOrder(append(names, helpers...))
	}
	return inOrder(append(slices.Clone(names), noRetries))
}

// shape is a drawn policy.
type shape struct {
	slow      slow
	attempts  int
	backoff   time.Duration
	codes     []string
	onlyLast  bool                        // in a chain, only calls of the last service are retried
	elsewhere bool                        // stagger's retries go to another backend; gRPC cannot
	slowAfter func(k *kind) time.Duration // the attempt timeout or the hedging delay
}

// slow is what a policy does about a slow attempt.
type slow uint8

const (
	slowNothing slow = iota
	slowTimeout      // another attempt in parallel after an attempt timeout
	slowHedge
)

// drawPolicy draws a policy of harm, but no time that a Retrier warns of because most calls take longer.
func (d *draft) drawPolicy() {
	codes := [][]string{{"UNAVAILABLE"}, {"UNAVAILABLE", "RESOURCE_EXHAUSTED"}, {"UNAVAILABLE", "ABORTED"}}[d.one("codes", 0.4, 0.4, 0.2)]
	attempts, backoff := 2+int(4*d.part("attempts")), d.span("backoff", 20*time.Millisecond, 250*time.Millisecond)
	d.shape = shape{attempts: attempts, backoff: backoff, codes: codes, onlyLast: len(d.services) > 1 && d.hit("only the last hop", 0.3)}
	policy := d.one("policy", 0.48, 0.32, 0.06, 0.14)
	over, near := tidy(d.log("attempt timeout", 1.1, 12)), d.even("near the median", 1.05, 1.6)
	d.say("%s", []string{"retries", fmt.Sprint("attempt timeout of medians: ", over), "hedges near the median", "hedges at p99"}[policy])
	d.shape.slow = []slow{slowNothing, slowTimeout, slowHedge, slowHedge}[policy]
	if d.shape.slow == slowHedge {
		d.shape.attempts = min(attempts, 3)
	}
	d.drawElsewhere()
	d.shape.slowAfter = func(k *kind) time.Duration {
		return []time.Duration{
			0, time.Duration(float64(k.median) * over), time.Duration(float64(k.median) * near), max(k.p99, k.median*6/5),
		}[policy]
	}
}

// drawElsewhere lets some users send retries to another backend.
func (d *draft) drawElsewhere() {
	if d.shape.elsewhere = d.hit("elsewhere", 0.15); d.shape.elsewhere {
		d.say("elsewhere")
	}
}

// files returns the policy files of these players, and the players as variants of the scenario. The players whose policy is the
// drawn one differ in their budget.
func (d *draft) files(names []string) (files object, variants []object) {
	files = object{}
	for _, name := range names {
		v := object{"name": name, "policy": name}
		variants = append(variants, v)
		switch name {
		case floor:
			v["serviceSeed"] = 1
			fallthrough
		case noRetries:
			v["policy"] = "NONE"
			continue
		case grpcThrottled, grpcPlain: // no chain guard, and it learns nothing
			v["guard"], v["blind"] = false, true
		case unbound:
			v["blind"] = true
		}
		entries := make([]object, 0, len(d.kinds))
		for i := range d.kinds {
			e := d.entry(name, &d.kinds[i])
			service, method, _ := strings.Cut(d.kinds[i].method[1:], "/")
			e["name"] = []object{{"service": service, "method": method}}
			if name == "admission" {
				e["admission"] = "REFUSE"
			}
			entries = append(entries, e)
		}
		file := object{"methodConfig": entries}
		files[name] = file
		if bucket := bucketOf(name); bucket != nil {
			file["budgets"] = []object{{"name": ownBudget, "bucket": bucket}}
		}
		switch {
		case name == grpcThrottled:
			file["retryThrottling"] = object{"maxTokens": 10, "tokenRatio": 0.1}
		case name != grpcPlain && d.shape.elsewhere:
			file["loadBalancingConfig"] = []object{{"stagger_retry_elsewhere": object{"childPolicy": []object{{"round_robin": object{}}}}}}
		}
	}
	return files, variants
}

// entry returns a player's policy for a kind of calls.
func (d *draft) entry(name string, k *kind) object {
	s := &d.shape
	retries := func(attempts int, more object) object {
		r := object{
			"maxAttempts": attempts, "initialBackoff": seconds(s.backoff), "maxBackoff": seconds(neat(16 * s.backoff)),
			"backoffMultiplier": 2, "retryableStatusCodes": s.codes,
		}
		maps.Copy(r, more)
		return object{"retryPolicy": r}
	}
	hedges := func(attempts int, delay time.Duration, more object) object {
		h := object{"maxAttempts": attempts, "hedgingDelay": seconds(delay), "nonFatalStatusCodes": s.codes}
		maps.Copy(h, more)
		return object{"hedgingPolicy": h}
	}
	within := func(t time.Duration) time.Duration { return neat(min(t, k.deadline*2/3)) }
	own := object{}
	switch name {
	case grpcPlain, unbound:
		own["budget"] = "NONE"
	}
	if bucketOf(name) != nil {
		own["budget"] = ownBudget
	}
	switch {
	case s.onlyLast && k.service != "shop":
		return object{}
	case name == grpcThrottled || name == grpcPlain: // gRPC's jitter; it has no attempt timeouts, and no hedges in Go
		own["jitter"] = "PROPORTIONAL"
		if d.set.helps() {
			return retries(s.attempts, own)
		}
		return retries(4, own)
	case name == "quick start": // the first example of README.md without its timeout
		return retries(4, object{"initialBackoff": "0.1s", "maxBackoff": "1s", "retryableStatusCodes": []string{"UNAVAILABLE"}})
	case name == "hedging": // as docs/hedging.md advises
		return hedges(2, within(k.p99), nil)
	case s.slow == slowHedge:
		return hedges(s.attempts, within(s.slowAfter(k)), own)
	case s.slow == slowTimeout:
		own["perAttemptTimeout"] = seconds(within(s.slowAfter(k)))
		return retries(s.attempts, own)
	default:
		return retries(s.attempts, own)
	}
}

// seconds returns a time in the form of policy files.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }
