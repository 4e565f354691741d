// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stagger-go/stagger/policy"
)

// player is a kind of retries that plays scenarios.
type player struct {
	name string
	file func(d *draft, p drawnPolicy) string // the policy file; nil: see [variant]
	grpc bool                                 // gRPC's own client, which
}

// The names of special players: those to compare with, or to judge first.
const (
	noRetries     = "no retries"
	defaultPlayer = "default"
	grpcPlayer    = "gRPC throttled"
)

// players are all players. The first is the reference.
var players = []player{
	{noRetries, nil, false},
	{grpcPlayer, (*draft).grpcFile, true},
	{"4 attempts", (*draft).unboundFile, true},
	{defaultPlayer, (*draft).defaultFile, false},
	{"quick start", (*draft).quickStartFile, false},
	{"hedging", (*draft).hedgingFile, false},
	{"admission", nil, false},
}

// playerNames returns the names of all players.
func playerNames() []string {
	list := make([]string, len(players))
	for i, p := range players {
		list[i] = p.name
	}
	return list
}

// drawnPolicy is the drawn part of the policy.
type drawnPolicy struct {
	attempts int
	backoff  time.Duration
	codes    string
	kind     policyKind
	times    []time.Duration // attempt timeout, or hedging delay, of each kind of calls
	onlyLast bool            // only calls to the
}

type policyKind uint8

const (
	kindPlain   policyKind = iota // retries only after failures
	kindTimeout                   // also after slow attempts
	kindReplace                   // also instead of
	kindHedge                     // hedges
)

// drawPolicy draws the policy. The default player uses it with the default budget.
func (d *draft) drawPolicy() drawnPolicy {
	p := drawnPolicy{attempts: 2 + d.IntN(4), backoff: d.span(20*time.Millisecond, 250*time.Millisecond), codes: "UNAVAILABLE"}
	if d.hit(0.5) {
		p.codes = "UNAVAILABLE, RESOURCE_EXHAUSTED"
	}
	p.kind = policyKind(d.one(0.48, 0.27, 0.05, 0.2))
	p.onlyLast = len(d.Services) > 1 && d.hit(0.3)
	var times func(u kind) time.Duration
	switch p.kind {
	case kindPlain:
		d.say("retries")
		return p
	case kindHedge:
		near := d.hit(0.3)
		part := d.even(0.95, 1.6)
		if near {
			d.say("hedges at %.2g times the median", part)
		} else {
			d.say("hedges at p99")
		}
		times = func(u kind) time.Duration {
			if near {
				return time.Duration(float64(u.median) * part)
			}
			return max(u.p99, u.median*6/5)
		}
	default:
		over := d.log(0.9, 12)
		d.say("attempt timeout of %.2g times the median", over)
		times = func(u kind) time.Duration { return time.Duration(float64(u.median) * over) }
	}
	for i, u := range d.kinds {
		p.times = append(p.times, neat(min(times(u), d.deadline(i)*2/3)))
	}
	return p
}

// file writes a policy file with an entry for each kind of calls.
func (d *draft) file(head string, p drawnPolicy, entry func(kind int) string) string {
	var b strings.Builder
	b.WriteString(head + "methodConfig:\n")
	for i, k := range d.kinds {
		service, name, _ := strings.Cut(strings.TrimPrefix(k.method, "/"), "/")
		fmt.Fprintf(&b, "  - name: [{service: %s, method: %s}]\n", service, name)
		if !p.onlyLast || k.service == d.last().Name {
			b.WriteString(entry(i))
		}
	}
	return b.String()
}

// retryPolicy writes the part that all retry policies share.
func retryPolicy(attempts int, first, longest time.Duration, codes string, more ...string) string {
	lines := append([]string{
		fmt.Sprintf("maxAttempts: %d", attempts), "initialBackoff: " + seconds(first), "maxBackoff: " + seconds(longest),
		"backoffMultiplier: 2", "retryableStatusCodes: [" + codes + "]",
	}, more...)
	return "    retryPolicy:\n      " + strings.Join(lines, "\n      ") + "\n"
}

func hedgingPolicy(attempts int, delay time.Duration, codes string) string {
	return fmt.Sprintf("    hedgingPolicy:\n      maxAttempts: %d\n      hedgingDelay: %s\n      nonFatalStatusCodes: [%s]\n", attempts, seconds(delay), codes)
}

// seconds returns a time in the form of policy files.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }

// longest returns the longest backoff.
func (p drawnPolicy) longest() time.Duration { return neat(16 * p.backoff) }

// drawn returns the drawn policy's entry for the calls of a service.
func (p drawnPolicy) entry(i int) string {
	switch p.kind {
	case kindHedge:
		return hedgingPolicy(min(p.attempts, 3), p.times[i], p.codes)
	case kindTimeout:
		return retryPolicy(p.attempts, p.backoff, p.longest(), p.codes, "perAttemptTimeout: "+seconds(p.times[i]))
	case kindReplace:
		return retryPolicy(p.attempts, p.backoff, p.longest(), p.codes, "perAttemptTimeout: "+seconds(p.times[i]), "onAttemptTimeout: RETRY")
	default:
		return retryPolicy(p.attempts, p.backoff, p.longest(), p.codes)
	}
}

func (d *draft) defaultFile(p drawnPolicy) string { return d.file("", p, p.entry) }

// grpcFile returns gRPC's own retries of the drawn codes: four attempts, its jitter, and the throttling of gRFC A6's
// example.
func (d *draft) grpcFile(p drawnPolicy) string {
	return d.file("retryThrottling: {maxTokens: 10, tokenRatio: 0.1}\n", p, func(int) string {
		return retryPolicy(4, p.backoff, p.longest(), p.codes, "jitter: PROPORTIONAL")
	})
}

func (d *draft) unboundFile(p drawnPolicy) string {
	return d.file("", p, func(int) string {
		return retryPolicy(4, p.backoff, p.longest(), p.codes, "jitter: PROPORTIONAL", "budget: NONE")
	})
}

// quickStartFile returns the first example of README.md without its timeout: the calls have their own deadlines.
func (d *draft) quickStartFile(p drawnPolicy) string {
	return d.file("", p, func(int) string {
		return retryPolicy(4, 100*time.Millisecond, time.Second, "UNAVAILABLE")
	})
}

// hedgingFile returns a policy that hedges at the usual p99, as docs/hedging.md advises.
func (d *draft) hedgingFile(p drawnPolicy) string {
	return d.file("", p, func(i int) string {
		return hedgingPolicy(2, neat(min(d.kinds[i].p99, d.deadline(i)*2/3)), "UNAVAILABLE")
	})
}

// warnings returns lint's warnings about the drawn policy from the file alone, and those of a Retrier within 100 calls.
func (d *draft) warnings(file string, p drawnPolicy) (list []string) {
	for _, w := range policy.Lint("policy.yaml", []byte(file)) {
		list = append(list, w.String())
	}
	for i, t := range p.times {
		switch k := d.kinds[i]; {
		case p.onlyLast && k.service != d.last().Name || t > k.median:
		case p.kind == kindHedge:
			list = append(list, fmt.Sprintf("hedgingDelay %v of %s is less than half of its calls take", t, k.method))
		default:
			list = append(list, fmt.Sprintf("perAttemptTimeout %v of %s is less than most of its calls take", t, k.method))
		}
	}
	return list
}
