// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/stagger-go/stagger/internal/tools/sim"
)

// target is stagger's target in a storm. Fields that are zero set no target.
type target struct {
	success  float64 // at least, 0 to 1
	perCall  float64 // requests for each call, at most
	recovery float64 // at most, in multiples of the time of the client without retries
	share    float64 // of the success of the client without retries, at least

	p99, p999 time.Duration // at most
	more      bool          // more success than stagger with retries wherever they are picked
}

// String returns the target in the words of the tables.
func (t target) String() string {
	var parts []string
	if t.success > 0 {
		parts = append(parts, fmt.Sprintf("success at least %g %%", 100*t.success))
	}
	if t.perCall > 0 {
		parts = append(parts, fmt.Sprintf("at most %g requests per call", t.perCall))
	}
	if t.recovery > 0 {
		parts = append(parts, fmt.Sprintf("time to recover at most %g times that without retries", t.recovery))
	}
	if t.share > 0 {
		parts = append(parts, fmt.Sprintf("success at least %g times that without retries", t.share))
	}
	for _, p := range []struct {
		name string
		most time.Duration
	}{{"p99", t.p99}, {"p999", t.p999}} {
		if p.most > 0 {
			parts = append(parts, fmt.Sprintf("%s at most %s ms", p.name, millis(p.most)))
		}
	}
	if t.more {
		parts = append(parts, "success higher than that of stagger whose retries go wherever they are picked to")
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// judge compares r with the target, and with the client without retries in the same storm.
func (t target) judge(r, without result) []verdict {
	var list []verdict
	part := func(only target, is, beside string, reached bool, measured ...result) {
		if only != (target{}) {
			list = append(list, judged(only.String(), is, beside, reached, measured...))
		}
	}
	part(target{success: t.success}, percent(r), "", r.Success >= t.success, r)
	part(target{perCall: t.perCall}, fmt.Sprintf("%.3f", r.PerCall), "", r.PerCall <= t.perCall, r)
	part(target{recovery: t.recovery}, r.Recovery.String()+" s", "no retries "+without.Recovery.String()+" s",
		within(t.recovery, r.Recovery, without.Recovery), r, without)
	part(target{p99: t.p99}, millis(r.P99)+" ms", "", r.P99 <= t.p99, r)
	part(target{p999: t.p999}, millis(r.P999)+" ms", "", r.P999 <= t.p999, r)
	part(target{share: t.share}, percent(r), "no retries "+percent(without), r.Success >= t.share*without.Success, r, without)
	return list
}

// within reports whether r took at most times as long as other. A client that never recovers can only be compared with
// another such.
func within(times float64, r, other sim.Recovered) bool {
	if r.State != sim.RecoveryReturned {
		return r.State == other.State
	}
	return other.State != sim.RecoveryReturned || r.Took.Seconds() <= times*other.Took.Seconds()
}
