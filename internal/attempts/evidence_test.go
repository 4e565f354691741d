// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stagger-go/stagger/internal/evidence"
)

// Which ends of an attempt are answers, whose time counts, and which are missed deadlines.
func TestAnswers(t *testing.T) {
	t.Parallel()
	list := tracePolicies(t)
	for what, row := range map[string]struct{ policy, play, want string }{
		"an answer":                                {"beside", "0 start; 150 end 1 OK", "a:150"},
		"of an attempt in whose place":             {"inplace", "0 start; 201 end 1 OK", "a:201"},
		"an error that is an answer":               {"beside", "0 start; 201 end 1 NOT_FOUND", "a:201"},
		"an error that is retryable":               {"beside", "0 start; 201 end 1 UNAV", ">"},
		"a refusal":                                {"beside", "0 start; 201 end 1 EXHAUSTED", ">f"},
		"a server's deadline":                      {"beside", "0 start; 201 end 1 DEADLINE", ">"},
		"a missed deadline":                        {"beside deadline=1000", "0 start; 1000 end 1 DEADLINE", ">d"},
		"a message too large":                      {"beside", "0 start; 201 end 1 EXHAUSTED final", ">"},
		"a reply that means not yet":               {"beside", "0 start; 201 end 1 OK notyet", "a:201"},
		"an error that means not yet":              {"beside", "0 start; 201 end 1 NOT_FOUND notyet", "a:201"},
		"a reply that tells a failure":             {"beside", "0 start; 201 end 1 OK again", ">"},
		"an error that a classifier finds final":   {"beside", "0 start; 201 end 1 NOT_FOUND final", ">"},
		"a missed deadline that it finds final":    {"beside deadline=1000", "0 start; 1000 end 1 DEADLINE final", ">d"},
		"a context that is over":                   {"beside", "0 start; 201 stop cancelled; 201 end 1 cut", ">"},
		"an answer that no server has seen":        {"beside", "0 start; 150 end 1 OK unseen", ">"},
		"an error that no server has seen":         {"beside", "0 start; 150 end 1 NOT_FOUND unseen", ">"},
		"a refusal that no server has seen":        {"beside", "0 start; 150 end 1 EXHAUSTED unseen", ">"},
		"a deadline in the wait for a connection":  {"beside deadline=1000", "0 start; 1000 end 1 DEADLINE unseen", ">"},
		"an answer to nobody":                      {"beside", "0 start; 201 stop cancelled; 201 end 1 OK", "a:201"},
		"the answer of the attempt beside":         {"beside", "0 start; 200 wake; 250 wake; 450 end 2 OK; 451 end 1 cut", "a:200 >"},
		"the first message of a stream":            {"beside", "0 start; 10 commit 1 message; 10 heard 1; 900 end 1 OK", "a:10"},
		"a stream that was committed by its bytes": {"beside", "0 start; 10 commit 1 buffer_full; 900 end 1 OK", ">"},
		"one committed before its first message":   {"beside", "0 start; 10 commit 1 context; 201 heard 1; 900 end 1 OK", "a:201"},
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

// The method is told how long an attempt has run that was slow and has lost: its response would have taken longer. An attempt that has
// brought a message has had its response.
func TestOutlasted(t *testing.T) {
	t.Parallel()
	list := tracePolicies(t)
	for what, row := range map[string]struct{ play, want string }{
		"a slow one":                                 {"0 start; 200 wake; 250 wake; 260 end 2 OK; 261 end 1 cut", "[10ms 261ms]"},
		"one that was not slow yet":                  {"0 start; 200 wake; 250 wake; 260 end 1 OK; 261 end 2 cut", "[260ms]"},
		"a slow one whose first message had come":    {"0 start; 200 wake; 250 wake; 255 heard 1; 260 commit 2 message; 260 heard 2; 261 end 1 cut", "[255ms 10ms]"},
		"a slow one that ends with a server's error": {"0 start; 200 wake; 250 wake; 260 end 2 OK; 261 end 1 UNAV", "[10ms]"},
		"a slow one that no server has seen":         {"0 start; 200 wake; 250 wake; 260 end 2 OK; 261 end 1 cut unseen", "[10ms]"},
	} {
		p := newPlay(list["beside"], "", 0)
		p.run(row.play)
		if got := fmt.Sprint(p.recorded); got != row.want {
			t.Errorf("%s: %s; want %s", what, got, row.want)
		}
	}
}

// What the method's last answers show stops attempts that a server would see.
func TestEvidence(t *testing.T) {
	t.Parallel()
	list := tracePolicies(t)
	const failure, timeout, hedge = "0 start; 10 end 1 UNAV", "0 start; 200 wake", "0 start; 50 wake"
	always, often := evidence.Evidence{Known: 10, Slow: 10, VerySlow: 10}, evidence.Evidence{Known: 10, Slow: 3}
	few, fast := evidence.Evidence{Known: 4}, evidence.Evidence{Known: 10, Slow: 2}
	for name, row := range map[string]struct {
		policy, play string
		shows        evidence.Evidence
		want, charge string
	}{
		"always slow, a failure":                 {"beside", failure, always, "slow_everywhere", ""},
		"always slow, and nothing was sent":      {"beside", failure + " unsent", always, "retry", ""},
		"always slow, a timeout":                 {"beside", timeout, always, "slow_everywhere", ""},
		"always slow, a failure of a hedge":      {"hedge", failure, always, "slow_everywhere", ""},
		"always slow, a failure that is fatal":   {"beside", "0 start; 10 end 1 NOT_FOUND", always, "non_retryable", ""},
		"always slow, and nothing is recorded":   {"beside unknown", failure, always, "retry", "Wf"},
		"slow, and fast for the call":            {"beside", failure, evidence.Evidence{Known: 10, Slow: 10, VerySlow: 9}, "retry", "Wf"},
		"often slow, a failure":                  {"beside", failure, often, "retry", "Wf"},
		"often slow, a failure of a hedge":       {"hedge", failure, often, "hedge", "Wf"},
		"often slow, a timeout":                  {"beside", timeout, often, "not_proven_fast", ""},
		"often slow, a timeout in whose place":   {"inplace", timeout, often, "not_proven_fast", ""},
		"often slow, a hedging delay":            {"hedge", hedge, often, "not_proven_fast", ""},
		"one slow answer of four":                {"inplace", timeout, evidence.Evidence{Known: 4, Slow: 1}, "not_proven_fast", ""},
		"one slow answer of five":                {"beside", timeout, evidence.Evidence{Known: 5, Slow: 1}, "hedge", "Ws"},
		"few answers, a timeout":                 {"beside", timeout, few, "not_proven_fast", ""},
		"no answer, a timeout":                   {"beside", timeout, evidence.Evidence{}, "not_proven_fast", ""},
		"no answer, a timeout in whose place":    {"inplace", timeout, evidence.Evidence{}, "retry", "Ws"},
		"few answers, no second reply":           {"beside alone", timeout, few, "retry", "Ws"},
		"few answers, a hedging delay":           {"hedge", hedge, few, "not_proven_fast", ""},
		"few answers, a failure":                 {"beside", failure, few, "retry", "Wf"},
		"no answer, a stream that is resumed":    {"retry", "0 start; 10 commit 1 message; 20 end 1 UNAV resumes", evidence.Evidence{}, "retry", "Wf"},
		"no answer, and nothing is recorded":     {"beside unknown", timeout, evidence.Evidence{}, "hedge", "Ws"},
		"fast, a failure":                        {"beside", failure, fast, "retry", "Wf"},
		"fast, a timeout":                        {"beside", timeout, fast, "hedge", "Ws"},
		"fast, a timeout in whose place":         {"inplace", timeout, fast, "retry", "Ws"},
		"fast, a hedging delay":                  {"hedge", hedge, fast, "hedge", "Ws"},
		"fast, a hedging delay, and no one else": {"hedge grants=0", hedge, fast, "budget_exhausted", ""},
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

// A slow attempt continues, and its call ends with the reason why it got no successor.
func TestNotProvenFast_GoesOn(t *testing.T) {
	t.Parallel()
	p := newPlay(tracePolicies(t)["beside"], "deadline=1000", 0)
	p.shows = evidence.Evidence{}
	p.run("0 start; 200 wake; 300 wake; 1000 stop deadline_exceeded; 1000 end 1 cut")
	want := []string{"0 start → send 1, wake 200", "200 wake → (not_proven_fast)", "300 wake", "1000 stop deadline_exceeded", "1000 end 1 cut → over not_proven_fast, = 1"}
	if !slices.Equal(p.steps, want) || strings.Join(p.told, " ") != "F E-" {
		t.Errorf("%q, told %v; want %q", p.steps, p.told, want)
	}
}

// The end of a call that is not enforced says that admission would have refused it.
func TestWouldRefuse(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"", " queue"} {
		p := newPlay(tracePolicies(t)["retry"], "admission deadline=1000"+queue, 0)
		p.set.Enforced = false
		p.run("0 start; 10 set answers; 10 end 1 UNAV; 60 wake; 70 end 2 OK")
		if got, want := p.call.End().WouldRefuse, queue != ""; got != want {
			t.Errorf("%q: would refuse: %v; want %v", queue, got, want)
		}
	}
}
