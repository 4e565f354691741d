// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/latency"
)

// Which ends of an attempt are answers, whose time counts, and which are missed deadlines.
func TestAnswers(t *testing.T) {
	t.Parallel()
	list := policies(t)
	for what, row := range map[string]struct{ policy, play, want string }{
		"an answer":                                  {"beside", "0 start; 150 end 1 OK", "a:150"},
		"of an attempt in whose place":               {"inplace", "0 start; 201 end 1 OK", "a:201"},
		"an error that is an answer":                 {"beside", "0 start; 201 end 1 NOT_FOUND", "a:201"},
		"an error that is retryable":                 {"beside", "0 start; 201 end 1 UNAV", ">"},
		"a refusal":                                  {"beside", "0 start; 201 end 1 EXHAUSTED", ">f"},
		"a server's deadline":                        {"beside", "0 start; 201 end 1 DEADLINE", ">b"},
		"a missed deadline":                          {"beside deadline=1000", "0 start; 1000 end 1 DEADLINE", ">d"},
		"a message too large":                        {"beside", "0 start; 201 end 1 NOT_FOUND final", ">"},
		"a context that is over":                     {"beside", "0 start; 201 stop cancelled; 201 end 1 cut", ">"},
		"a panic":                                    {"beside", "0 start; 201 end 1 panic", ">"},
		"an answer to nobody":                        {"beside", "0 start; 201 stop cancelled; 201 end 1 OK", "a:201"},
		"the answer of the attempt beside":           {"beside", "0 start; 200 wake; 250 wake; 450 end 2 OK; 451 end 1 cut", "a:200 >"},
		"the first message of a stream":              {"beside", "0 start; 10 commit 1 message; 10 heard 1; 900 end 1 OK", "a:10"},
		"a stream that was committed by its bytes":   {"beside", "0 start; 10 commit 1 buffer_full; 900 end 1 OK", ">"},
		"one committed before its first message":     {"beside", "0 start; 10 commit 1 context; 201 heard 1; 900 end 1 OK", "a:201"},
		"one that the application hardly waited for": {"beside", "0 start; 300 paused 80; 301 end 1 OK", ">a"},
	} {
		name, options, _ := strings.Cut(row.policy, " ")
		p := newPlay(list[name], options+" admission", 0)
		p.run(row.play)
		got := slices.DeleteFunc(slices.Clone(p.told), func(s string) bool { return s[0] != '>' && !strings.HasPrefix(s, "a:") })
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: %v; want %s", what, got, row.want)
		}
	}
}

// What the target's last outcomes show stops attempts that a server would see, or keeps the reserve from paying for them.
func TestEvidence(t *testing.T) {
	t.Parallel()
	list := policies(t)
	const failure, timeout, hedge = "0 start; 10 end 1 UNAV", "0 start; 200 wake", "0 start; 50 wake"
	queue := latency.Evidence{Long: 1}
	long := latency.Evidence{Fast: 2, Long: 1, LongNow: true}
	older := latency.Evidence{Fast: 2, Long: 1}
	few := latency.Evidence{Fast: 1}
	fewer := latency.Evidence{Fast: 1, Long: 1}
	for name, row := range map[string]struct {
		policy, play string
		shows        latency.Evidence
		want, charge string
	}{
		"some long, few fast, a failure":     {"beside", failure, fewer, "retry", "Wfes"},
		"some long, few fast, a timeout":     {"beside", timeout, fewer, "hedge", "Wtes"},
		"some long, some fast, a failure":    {"beside", failure, older, "retry", "Wf"},
		"some long, some fast, a timeout":    {"beside", timeout, older, "hedge", "Wte"},
		"all long, a failure":                {"beside", failure, queue, "slow_everywhere", ""},
		"all long, and nothing was sent":     {"beside", failure + " unsent", queue, "retry", ""},
		"all long, a timeout":                {"beside", timeout, queue, "slow_everywhere", ""},
		"all long, a failure of a hedge":     {"hedge", failure, queue, "slow_everywhere", ""},
		"all long, a failure that is fatal":  {"beside", "0 start; 10 end 1 NOT_FOUND", queue, "non_retryable", ""},
		"all long, and nothing is known":     {"beside unknown", failure, queue, "retry", "Wf"},
		"one long, a failure":                {"beside", failure, long, "retry", "Wfe"},
		"one long, a timeout":                {"beside", timeout, long, "slow_everywhere", ""},
		"one long, a timeout in whose place": {"inplace", timeout, long, "slow_everywhere", ""},
		"one long, a stream that is resumed": {"retry", "0 start; 10 commit 1 message; 20 end 1 UNAV resumes", long, "retry", "Wfe"},
		"all fast, a failure":                {"beside", failure, quick, "retry", "Wf"},
		"all fast, a timeout":                {"beside", timeout, quick, "hedge", "Wt"},
		"all fast, a hedging delay":          {"hedge", hedge, quick, "hedge", "Wt"},
		"one fast, a failure":                {"beside", failure, few, "retry", "Wfs"},
		"four fast, a timeout":               {"beside", timeout, latency.Evidence{Fast: 4}, "hedge", "Wte"},
		"none, a failure":                    {"beside", failure, latency.Evidence{}, "retry", "Wfs"},
		"none, a timeout":                    {"beside", timeout, latency.Evidence{}, "hedge", "Wtes"},
		"new, a failure":                     {"beside", failure, latency.Evidence{New: true}, "retry", "Wf"},
		"new, a timeout":                     {"beside", timeout, latency.Evidence{New: true}, "hedge", "Wte"},
		"none, and nothing is known":         {"beside unknown", timeout, latency.Evidence{}, "hedge", "Wt"},
	} {
		of, options, _ := strings.Cut(row.policy, " ")
		p := newPlay(list[of], options, 0)
		p.shows = row.shows
		p.run(row.play)
		charge := ""
		for _, told := range p.told {
			if told[0] == 'W' {
				charge = told
			}
		}
		if got := p.steps[len(p.steps)-1]; !strings.Contains(got, "("+row.want+")") || charge != row.charge {
			t.Errorf("%s: %s, charged %q; want %s, %q", name, got, charge, row.want, row.charge)
		}
	}
}

// A missed deadline costs something unless two outcomes were fast, whichever attempt had it.
func TestMissed(t *testing.T) {
	t.Parallel()
	few, some := latency.Evidence{Fast: 1}, quick
	for name, row := range map[string]struct {
		play  string
		shows latency.Evidence
		want  string
	}{
		"the server's answer":               {"0 start; 980 end 1 DEADLINE", few, "S M E-"},
		"the client's":                      {"0 start; 1000 stop deadline_exceeded; 1000 end 1 DEADLINE", few, "S M E-"},
		"of a later attempt":                {"0 start; 10 end 1 UNAV; 60 wake; 1000 stop deadline_exceeded; 1000 end 2 DEADLINE", few, "S F ( Wfs ) M - E-"},
		"two were fast":                     {"0 start; 980 end 1 DEADLINE", some, "S E-"},
		"a deadline that a server has made": {"0 start; 970 end 1 DEADLINE", few, "S E-"},
		"a failure at the deadline":         {"0 start; 990 end 1 NOT_FOUND", few, "S E-"},
	} {
		p := newPlay(policies(t)["retry"], "deadline=1000", 0)
		p.shows = row.shows
		if p.run(row.play); strings.Join(p.told, " ") != row.want {
			t.Errorf("%s: told %v; want %s", name, p.told, row.want)
		}
	}
}

// A slow attempt continues, and its call ends with the reason why it got no successor.
func TestSlowEverywhere_GoesOn(t *testing.T) {
	t.Parallel()
	p := newPlay(policies(t)["beside"], "deadline=1000", 0)
	p.shows.LongNow = true
	p.run("0 start; 200 wake; 300 wake; 1000 stop deadline_exceeded; 1000 end 1 cut")
	want := []string{"0 start → send 1, wake 200", "200 wake → (slow_everywhere)", "300 wake", "1000 stop deadline_exceeded", "1000 end 1 cut → over slow_everywhere, = 1"}
	if !slices.Equal(p.steps, want) || strings.Join(p.told, " ") != "S F E-" {
		t.Errorf("%q, told %v; want %q", p.steps, p.told, want)
	}
}
