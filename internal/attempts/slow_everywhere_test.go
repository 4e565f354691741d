// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/latency"
	"github.com/stagger-go/stagger/policy"
)

// A slow attempt gets no successor after a slow answer to another call. Not every end of an attempt is an answer.
func TestSlowEverywhere(t *testing.T) {
	t.Parallel()
	list := policies(t)
	for name, row := range map[string]struct{ policy, before, want string }{
		"a slow answer":                                             {"beside", "0 start; 201 end 1 OK", "slow_everywhere"},
		"of an attempt in whose place":                              {"inplace", "0 start; 201 end 1 OK", "slow_everywhere"},
		"an answer in time":                                         {"beside", "0 start; 200 end 1 OK", "hedge"},
		"nothing":                                                   {"beside", "0 start", "hedge"},
		"an error that is an answer":                                {"beside", "0 start; 201 end 1 NOT_FOUND", "slow_everywhere"},
		"an error that is retryable":                                {"beside", "0 start; 201 end 1 UNAV", "hedge"},
		"a refusal":                                                 {"beside", "0 start; 201 end 1 EXHAUSTED", "hedge"},
		"a server's deadline":                                       {"beside", "0 start; 201 end 1 DEADLINE", "hedge"},
		"a message too large":                                       {"beside", "0 start; 201 end 1 NOT_FOUND final", "hedge"},
		"a context that is over":                                    {"beside", "0 start; 201 stop cancelled; 201 end 1 cut", "hedge"},
		"a panic":                                                   {"beside", "0 start; 201 end 1 panic", "hedge"},
		"an answer to nobody":                                       {"beside", "0 start; 201 stop cancelled; 201 end 1 OK", "slow_everywhere"},
		"the answer of the attempt beside":                          {"beside", "0 start; 200 wake; 250 wake; 450 end 2 OK; 451 end 1 cut", "hedge"},
		"a slow answer of the attempt beside":                       {"beside", "0 start; 200 wake; 250 wake; 451 end 2 OK; 451 end 1 cut", "slow_everywhere"},
		"the first message of a stream":                             {"beside", "0 start; 10 commit 1 message; 10 heard 1; 900 end 1 OK", "hedge"},
		"a late first message of a stream":                          {"beside", "0 start; 201 commit 1 message; 201 heard 1; 900 end 1 OK", "slow_everywhere"},
		"a stream that was read to a later end":                     {"beside", "0 start; 10 commit 1 message; 10 heard 1; 900 end 1 NOT_FOUND", "hedge"},
		"a stream that was committed by its bytes":                  {"beside", "0 start; 10 commit 1 buffer_full; 900 end 1 OK", "hedge"},
		"a stream that was committed before its first message":      {"beside", "0 start; 10 commit 1 context; 100 heard 1; 900 end 1 OK", "hedge"},
		"a stream that was committed before its late first message": {"beside", "0 start; 10 commit 1 context; 201 heard 1; 900 end 1 OK", "slow_everywhere"},
		"a slow answer that the application hardly waited for":      {"beside", "0 start; 300 paused 80; 301 end 1 OK", "hedge"},
		"a message that came too late to be shown":                  {"inplace", "0 start; 200 wake; 250 wake; 251 commit 1 message; 251 heard 1; 251 end 1 cut; 260 end 2 OK", "retry"},
	} {
		first := newPlay(list[row.policy], "", 0)
		first.last = new(latency.LastAnswers)
		first.run(row.before)
		second := newPlay(list[row.policy], "", 0)
		second.last = first.last
		second.run("1000 start; 1200 wake")
		if got := second.steps[1]; !strings.Contains(got, "("+row.want+")") {
			t.Errorf("%s: %s; want %s", name, got, row.want)
		}
		if asked := slices.Contains(second.told, "Wt") || slices.Contains(second.told, "Wh"); asked == (row.want == "slow_everywhere") {
			t.Errorf("%s: the budget was charged: %v", name, asked)
		}
	}
}

// A hedged answer is slow if it took longer than the delay of 50 ms, and twice as long as usual.
func TestSlowEverywhere_Hedges(t *testing.T) {
	t.Parallel()
	list := policies(t)
	list["at once"] = decision.New(policy.Spec{Hedge: &policy.HedgeSpec{MaxAttempts: 3, NonFatal: []codes.Code{codes.Unavailable}}})
	for name, row := range map[string]struct {
		policy, options string
		took            int
		want            string
	}{
		"slow":                           {"hedge", "median=10", 51, "slow_everywhere"},
		"in time":                        {"hedge", "median=10", 50, "hedge"},
		"a delay below the median":       {"hedge", "median=60", 120, "hedge"},
		"twice as long as usual":         {"hedge", "median=60", 121, "slow_everywhere"},
		"nothing is usual yet":           {"hedge", "median=0", 1000, "latency_unknown"},
		"a delay of 0":                   {"at once", "median=10", 1000, "hedge"},
		"a quantile":                     {"quantile", "median=10 quantile=80", 81, "slow_everywhere"},
		"a quantile, in time":            {"quantile", "median=10 quantile=80", 80, "hedge"},
		"a quantile that is not known":   {"quantile", "median=10", 51, "slow_everywhere"},
		"a quantile far below the usual": {"quantile", "median=100 quantile=20", 190, "hedge"},
	} {
		p := newPlay(list[row.policy], row.options, 0)
		p.last = new(latency.LastAnswers)
		p.run("0 start")
		p.call.Ended(1, Result{}, p.now(row.took, false))
		p.last.RecordAnswer(at(row.took) > max(p.call.slowLimit(), 1), at(row.took), at(row.took)) // at 0, another policy's
		if row.policy != "at once" {
			p.last = new(latency.LastAnswers)
			p.run("2000 start")
			p.call.Ended(1, Result{}, p.now(2000+row.took, false))
		}
		p.run("4000 start; 4100 wake")
		if got := p.steps[len(p.steps)-1]; !strings.Contains(got, "("+row.want+")") {
			t.Errorf("%s: %s; want %s", name, got, row.want)
		}
	}
}

// While the usual latency is unknown, no answer counts as slow.
func TestSlowEverywhere_NothingUsual(t *testing.T) {
	t.Parallel()
	p := newPlay(policies(t)["hedge"], "median=0", 0)
	p.last = new(latency.LastAnswers)
	if p.run("0 start; 1000 end 1 OK"); p.last.Slow(0, at(1000)) > 0 {
		t.Error("an answer is slow before the usual latency is known")
	}
}

// After one slow answer, servers hang: extra attempts return when that answer is too old.
func TestSlowEverywhere_Hang(t *testing.T) {
	t.Parallel()
	last := new(latency.LastAnswers)
	last.RecordAnswer(true, time.Second, time.Second)
	for began, want := range map[int]string{1_000: "slow_everywhere", 10_800: "slow_everywhere", 10_801: "hedge", 60_000: "hedge"} {
		p := newPlay(policies(t)["beside"], "", at(began))
		p.last = last
		p.run("0 start; 200 wake")
		if got := p.steps[1]; !strings.Contains(got, "("+want+")") {
			t.Errorf("a call at %v: %s; want %s", at(began), got, want)
		}
	}
}

// A slow attempt continues, and its call ends with the reason why it got no successor.
func TestSlowEverywhere_GoesOn(t *testing.T) {
	t.Parallel()
	p := newPlay(policies(t)["beside"], "deadline=1000", 0)
	p.last = new(latency.LastAnswers)
	p.last.RecordAnswer(true, time.Second, 0)
	p.last.RecordAnswer(true, time.Second, at(100))
	p.run("0 start; 200 wake; 300 wake; 1000 stop deadline_exceeded; 1000 end 1 cut")
	want := []string{"0 start → send 1, wake 200", "200 wake → (slow_everywhere)", "300 wake", "1000 stop deadline_exceeded", "1000 end 1 cut → over slow_everywhere, = 1"}
	if !slices.Equal(p.steps, want) || strings.Join(p.told, " ") != "S F E-" {
		t.Errorf("%q, told %v; want %q", p.steps, p.told, want)
	}
}

// If all of the last answers took much of their calls' time, there is a queue: no attempt follows that a server would see.
func TestSlowEverywhere_Long(t *testing.T) {
	t.Parallel()
	list := policies(t)
	for name, row := range map[string]struct{ policy, options, play, want string }{
		"a failure":                          {"beside", "", "0 start; 10 end 1 UNAV", "(slow_everywhere)"},
		"a failure that goes unnoticed":      {"beside", "few", "0 start; 10 end 1 UNAV", "(retry)"},
		"a failure, and nothing was sent":    {"beside", "", "0 start; 10 end 1 UNAV unsent", "(retry)"},
		"a timeout":                          {"beside", "", "0 start; 200 wake", "(slow_everywhere)"},
		"a hedging delay":                    {"hedge", "", "0 start; 50 wake", "(slow_everywhere)"},
		"a failure that is fatal":            {"beside", "", "0 start; 10 end 1 NOT_FOUND", "(non_retryable)"},
		"a failure, and nothing is known":    {"beside", "unknown", "0 start; 10 end 1 UNAV", "(retry)"},
		"a failure of a hedge that is alone": {"hedge", "", "0 start; 10 end 1 UNAV", "(slow_everywhere)"},
	} {
		options, long := row.options, longAnswers
		if options == "few" {
			options, long = "", longAnswers-1
		}
		p := newPlay(list[row.policy], options, 0)
		p.long = long
		p.run(row.play)
		if got := p.steps[len(p.steps)-1]; !strings.Contains(got, row.want) {
			t.Errorf("%s: %s; want %s", name, got, row.want)
		}
	}
}
