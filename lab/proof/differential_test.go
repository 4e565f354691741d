// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package proof_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/interceptor"
	"github.com/stagger-go/stagger/internal/testkit"
	"github.com/stagger-go/stagger/policy"
)

// The reference is gRPC itself: with its own retries, and without any.
var (
	byGRPC = world{name: "gRPC with retryPolicy", config: func(s *script) string { return s.retries("") }}
	bare   = world{name: "gRPC without a policy"}
)

// Worlds that must behave like gRPC with its own retries.
var retrying = []world{
	{name: "retryPolicy", config: func(s *script) string { return s.retries("") }, mode: policy.ModeEnforce},
	{name: "retryPolicy with a perAttemptTimeout of an hour", mode: policy.ModeEnforce, config: slow},
	{name: "hedges after an hour, or a failure", mode: policy.ModeEnforce, config: func(s *script) string {
		return entry(fmt.Sprintf(`"hedgingPolicy": {"maxAttempts": %d, "hedgingDelay": "7200s", "nonFatalStatusCodes": [%s], "budget": "NONE"}`, s.most, names(s.retryable)))
	}},
}

// Worlds that must behave like gRPC without a policy.
var idle = []world{
	{name: "no policy", mode: policy.ModeEnforce},
	{name: "mode OFF", config: func(s *script) string { return s.retries("") }, mode: policy.ModeOff},
	{name: "mode OBSERVE", config: func(s *script) string { return s.retries("") }, mode: policy.ModeObserve},
	{name: "a code that never comes", mode: policy.ModeEnforce, config: func(s *script) string {
		never := *s
		never.retryable = []codes.Code{codes.DataLoss}
		return never.retries("")
	}},
	{name: "a code that never comes, and a timeout", mode: policy.ModeEnforce, watched: true, config: func(s *script) string {
		never := *s
		never.retryable = []codes.Code{codes.DataLoss}
		return slow(&never)
	}},
	{name: "MaxAttempts(1)", config: func(s *script) string { return s.retries("") }, mode: policy.ModeEnforce, option: interceptor.MaxAttempts(1)},
	{name: "hedges after an hour", mode: policy.ModeEnforce, watched: true, config: func(*script) string {
		return entry(`"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "7200s", "nonFatalStatusCodes": ["DATA_LOSS"], "budget": "NONE"}`)
	}},
	{name: "hedges at once", mode: policy.ModeEnforce, watched: true, twins: true, config: func(*script) string {
		return entry(`"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0s", "nonFatalStatusCodes": ["DATA_LOSS"], "budget": "NONE"}`)
	}},
	{name: "hedges after a timeout", mode: policy.ModeEnforce, watched: true, twins: true, config: func(s *script) string {
		never := *s
		never.retryable = []codes.Code{codes.DataLoss}
		return strings.Replace(slow(&never), `"7200s"`, `"0.004s"`, 1)
	}},
	{name: "hedges of OBSERVE", mode: policy.ModeObserve, watched: true, config: func(*script) string {
		return entry(`"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.01s", "nonFatalStatusCodes": ["UNAVAILABLE"], "budget": "NONE"}`)
	}},
}

// slow returns retries with a timeout that never expires, and would start a parallel attempt.
func slow(s *script) string {
	return s.retries(`, "perAttemptTimeout": "7200s", "onAttemptTimeout": "HEDGE"`)
}

// difference is one difference between two sights.
type difference struct {
	what           string // "sender 3", "attempts", …
	want, got      string
	wanted, gotten result // of the application's calls
}

// alike reports whether the texts are equal.
func (d difference) alike() bool {
	if d.wanted.call != "" {
		return d.wanted.call == d.gotten.call && d.wanted.got == d.gotten.got
	}
	return d.want == d.got
}

func (d difference) sameTime() bool { return (d.wanted.at - d.gotten.at).Abs() <= slack }

// slack is the tolerance of times: gRPC's backoffs of a nanosecond, and a microsecond of transit for each frame.
const slack = 100 * time.Microsecond

// differences compares the sights of gRPC and of a Retrier.
func differences(want, got *sight) (list []difference) {
	add := func(what, want, got string) {
		if want != got {
			list = append(list, difference{what: what, want: want, got: got})
		}
	}
	list = append(slices.Concat(compare("sender", want.sender, got.sender), compare("receiver", want.receiver, got.receiver)), list...)
	add("header", want.header, got.header)
	add("trailer", want.trailer, got.trailer)
	add("peer", fmt.Sprint(want.peer), fmt.Sprint(got.peer))
	add("OnFinish", strings.Join(want.finished, ", "), strings.Join(got.finished, ", "))
	add("asked in OnFinish", want.asked, got.asked)
	add("attempts", strings.Join(want.attempts, "; "), strings.Join(got.attempts, "; "))
	return list
}

// compare compares the results of two applications' calls, and their times.
func compare(who string, want, got []result) (list []difference) {
	for i := range max(len(want), len(got)) {
		w, g := result{got: "nothing"}, result{got: "nothing"}
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w.call != g.call || w.got != g.got || (w.at-g.at).Abs() > slack {
			list = append(list, difference{fmt.Sprint(who, " ", i), w.String(), g.String(), w, g})
		}
	}
	return list
}

// contrast plays a script in both worlds. A Retrier must behave like gRPC in one of several plays, since simultaneous events
// may happen in either order, or show only permitted differences.
func contrast(t *testing.T, s *script, ours, theirs world) string {
	t.Helper()
	got := ours.play(t, s)
	var found []difference
	for range 5 {
		c := compared(s, ours, theirs.play(t, theirs.understood(s)), got)
		found = slices.DeleteFunc(differences(c.want, c.got), c.permits)
		if len(found) == 0 {
			return ""
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, against %s (%s):\n", ours.name, theirs.name, got.reason)
	for _, d := range found {
		fmt.Fprintf(&b, "  %s: want %s\n%*s got %s\n", d.what, d.want, len(d.what)+3, "", d.got)
	}
	return b.String()
}

// playRetries compares a Retrier with gRPC's own retries.
func playRetries(t *testing.T, d *draws) string {
	t.Helper()
	ours := one(d, retrying...)
	s := drawScript(d).unlocked().blind()
	return described(s, func() string { return repeated(t, func() string { return contrast(t, s, ours, byGRPC) }) })
}

// repeated returns the result of compare if that finds anything in eight more of ten plays. Simultaneous events happen in any order in both
// worlds: a difference that shows in some plays only may be due to that, and is logged.
func repeated(t *testing.T, compare func() string) string {
	t.Helper()
	first := compare()
	if first == "" {
		return ""
	}
	for misses, plays := 0, 0; plays < 10; plays++ {
		if compare() == "" {
			misses++
		}
		if misses == 3 {
			t.Log("not in eight of ten more plays: ", first)
			return ""
		}
	}
	return first
}

// twins returns the script for attempts that are alike. Only calls with one request are hedged, and a lost connection ends
// all attempts.
func (s *script) twins() *script {
	s.served, s.alike = s.served[:1], true
	if end := &s.served[0].end; end.what == "drop" || end.what == "cut" {
		*end = move{what: "fail", code: codes.Unavailable, after: end.after}
	}
	if s.kind == clientStream || s.kind == bidiStream {
		s.kind = unary
	}
	return s
}

// unlocked returns the script without parts that gRPC's own retries cannot play in virtual time: they hold a lock while they
// wait, and waiting for a lock stops the bubble's clock.
func (s *script) unlocked() *script {
	s.together, s.closes = false, 0
	return s
}

// playBare compares a Retrier that has nothing to retry with gRPC without a policy.
func playBare(t *testing.T, d *draws) string {
	t.Helper()
	ours := one(d, idle...)
	s := drawScript(d)
	if ours.twins {
		s = s.twins()
	}
	if s.kind != unary {
		s.drawDisorder(d)
	}
	if ours.watched && ours.mode == policy.ModeEnforce {
		s.third = nil // Context waits for Header and RecvMsg of another goroutine: a row of NOT-HANDLED.md
	}
	if ours.name == "hedges after a timeout" {
		s.form %= 2 // messages that cannot be created are not hedged: the next attempt replaces the slow one
		for i := range s.moves {
			if s.moves[i].what == "recv nil" {
				s.moves[i].what = "recv"
			}
		}
	}
	return described(s, func() string { return repeated(t, func() string { return contrast(t, s, ours, bare) }) })
}

func TestDifferential_Retries(t *testing.T) {
	testkit.Long(t)
	search(t, 200, 100, playRetries)
}

func TestDifferential_Bare(t *testing.T) {
	testkit.Long(t)
	search(t, 300, 150, playBare)
}
