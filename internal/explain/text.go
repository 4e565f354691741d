// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/backoff"
	"github.com/stagger-go/stagger/budget"
	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/evidence"
	"github.com/stagger-go/stagger/internal/policyfile/codename"
	"github.com/stagger-go/stagger/internal/policyfile/compiled"
	"github.com/stagger-go/stagger/internal/policyfile/defaults"
	"github.com/stagger-go/stagger/internal/policyfile/document"
	"github.com/stagger-go/stagger/policy"
)

// Text returns the explanation, for a terminal and the debug page.
func (a *Answer) Text() string {
	var b strings.Builder
	fmt.Fprintln(&b, document.Printable(a.Method))
	if a.Policy == nil {
		fmt.Fprintf(&b, "  %s: one attempt\n", a.Because)
		return b.String()
	}
	a.facts(func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, document.Printable(fmt.Sprintf(format, args...)))
	})
	fmt.Fprintf(&b, "\nIf %s:\n\n", document.Printable(a.scenario()))
	if len(a.Events) > 0 {
		a.timeline(&b)
	}
	fmt.Fprintln(&b, document.Printable(a.outcome()))
	if a.Hang {
		b.WriteString("\n" + a.remedy())
	}
	if n := len(a.Events); n > 0 && refuses(a.Events[n-1].Decision.Reason) {
		fmt.Fprintf(&b, "\nThe checks after attempt %d:\n\n", a.Events[n-1].Attempt)
		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "  result\tcheck\treason if it fails")
		result := "passed"
		for _, s := range decision.Checks() {
			failed := s.No == a.Events[n-1].Decision.Reason
			if failed {
				result = "FAILED"
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\n", result, s.Question, s.No)
			if failed {
				result = "–"
			}
		}
		_ = table.Flush() // a builder takes all
	}
	return b.String()
}

func refuses(reason policy.Reason) bool {
	return slices.ContainsFunc(decision.Checks(), func(s decision.Check) bool { return s.No == reason })
}

// timeline writes the table of attempts, with the time of sending if attempts take time. An attempt that still runs when the call
// ends has a row as well.
func (a *Answer) timeline(b *strings.Builder) {
	timed := slices.ContainsFunc(a.Events, func(e Event) bool { return e.At != e.Sent })
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	row := func(attempt any, sent, state string, rest ...string) {
		if timed {
			rest = slices.Insert(rest, 0, sent, state)
		}
		fmt.Fprintf(table, "  %v\t%s\n", attempt, strings.Join(rest, "\t"))
	}
	row("attempt", "sent", "state", "at", "then", "wait", "between", "reason")
	for _, e := range a.Events {
		state, wait, between := codename.Of(a.Code), "", ""
		if e.Slow {
			state = "slow"
		}
		if e.Decision.Retry || e.Decision.Announced() {
			wait = Short(e.Decision.Delay)
		}
		if e.Longest > 0 {
			between = Short(e.Least) + " and " + Short(e.Longest)
		}
		row(e.Attempt, Short(e.Sent), state, Short(e.At), e.then(), wait, between, string(e.Decision.Reason))
	}
	for i, sent := range a.Sent {
		if slices.ContainsFunc(a.Events, func(e Event) bool { return e.Attempt == i+1 }) {
			continue
		}
		at, then, reason := Short(a.At), "the call ends", string(a.End.Reason)
		if a.Never {
			at, then, reason = "", "it runs on", ""
		}
		row(i+1, Short(sent), "running", at, then, "", "", reason)
	}
	_ = table.Flush() // a builder takes all
	b.WriteByte('\n')
}

// facts adds the properties that all calls of the method share: the entry's settings, and the defaults of those it leaves out.
// Without a name a fact continues the one before.
func (a *Answer) facts(add func(name, format string, args ...any)) {
	add("entry", "%s", a.entryText())
	if mode := a.mode(); mode != "" {
		add("mode", "%s", mode)
	}
	add("attempts", "%s", a.attempts())
	add("safe", "%s: %s", map[bool]string{true: "yes", false: "no"}[a.Safe], a.Because)
	settings(a.Policy, a.Alone, add)
	if a.Budget != "" {
		add("budget", "%s%s", a.Budget, map[bool]string{true: ", which is empty"}[a.BudgetEmpty])
		for _, line := range rules(a.Rule) {
			add("", "%s", line)
		}
	}
	if a.Policy.MaxAttempts() > 1 {
		a.slowness(add)
	}
	switch {
	case a.ByDefault:
		add("deadline", "%v, since the call has none (defaultTimeout)", a.Limit)
	case a.Limit > 0:
		add("deadline", "%v for the whole call", a.Limit)
	}
}

// slowness adds what the policy calls slow, and what depends on that.
func (a *Answer) slowness(add func(name, format string, args ...any)) {
	const part = "a quarter of the call's time to the deadline"
	timeout, watched := attempts.SlowAfter(a.Policy, nil, false)
	limit := "the hedging delay"
	if compiled.Of(a.Policy).Hedge == nil {
		limit = timeout.String()
	}
	if timeout == 0 {
		add("slow", "a response is slow, and very slow, if it took over %s", part)
	} else {
		add("slow", "a response is slow if it took over %s, and very slow if also over %s", limit, part)
	}
	switch {
	case !watched:
	case a.Policy.Parallel():
		add("", "another attempt follows a slow one only while at most %d of the method's last %d responses were slow, after %d or more",
			evidence.MostSlow, evidence.Remembered, evidence.Enough)
	default:
		add("", "another attempt replaces a slow one only while at most %d of the method's last %d responses were slow; "+
			"of fewer, at most a fifth", evidence.MostSlow, evidence.Remembered)
	}
	add("", "while all of the method's last %d responses were very slow, nothing is retried (docs/overload.md)", evidence.Remembered)
}

// rules returns the rules of a budget, in sentences.
func rules(c budget.Config) []string {
	switch c := c.(type) {
	case budget.BucketConfig:
		return []string{
			fmt.Sprintf("a bucket of %v retries, or of what the successes of the last %v add, if that is more", c.Size, budget.Window),
			fmt.Sprintf("a successful call adds %v; time alone fills the bucket in %v", c.PerSuccess, budget.RefillTime),
			fmt.Sprintf("a retry costs 1, an attempt after a slow one %v, or 1 if a later one was answered and none of the last responses was slow; "+
				"a successful retry refunds %s its cost, up to %v",
				c.SlowCost, times(c.Refund), max(c.Size, c.RefundSize)),
			fmt.Sprintf("after %d failed attempts in a row, retries wait for an answer; after %v without a failure, one of them asks; "+
				"then one returns, and after each that is answered three more, if it takes at most the average time of those",
				budget.AllFail, budget.Probe),
		}
	case budget.ThrottleConfig:
		return []string{
			fmt.Sprintf("gRPC's retryThrottling: %v tokens, of which more than half must be left for a retry", c.MaxTokens),
			fmt.Sprintf("an attempt that fails takes 1, a successful call adds %v", c.TokenRatio),
		}
	default:
		return nil
	}
}

func times(n float64) string {
	if n == 2 {
		return "twice"
	}
	return fmt.Sprintf("%v ×", n)
}

// scenario returns how every attempt ends.
func (a *Answer) scenario() string {
	var b strings.Builder
	switch {
	case a.Down:
		b.WriteString("no connection can be made, from the call's start on")
	case a.Hang:
		b.WriteString("no attempt ever gets a response")
		if len(a.Sent) > 1 && a.Budget != "" {
			b.WriteString(", and the budget pays for each")
		}
	default:
		b.WriteString("every attempt fails with " + codename.Of(a.Code))
		if a.Pushback != "" {
			b.WriteString(" and " + decision.PushbackTrailer + ": " + a.Pushback)
		}
		b.WriteString(", " + map[bool]string{true: "after " + a.Latency.String(), false: "immediately"}[a.Latency > 0])
	}
	for _, c := range a.Conditions() {
		if *c.Holds && c.Adds != "" {
			b.WriteString(", and " + c.Adds)
		}
	}
	return b.String()
}

// outcome returns how the call ends.
func (a *Answer) outcome() string {
	if a.Never {
		return "The call does not end: it has no deadline, and there is no response."
	}
	n := fmt.Sprintf("%d attempts", a.End.Attempts)
	if a.End.Attempts == 1 {
		n = "1 attempt"
	}
	if a.End.Hedges > 0 {
		n += fmt.Sprintf(", %d of them hedges", a.End.Hedges)
	}
	reason := string(a.End.Reason)
	if a.End.Refusal != "" {
		reason += ", and no attempt was sent in parallel with the slow one: " + string(a.End.Refusal)
	}
	return fmt.Sprintf("The call ends after %s with %s: %s (%s).", Short(a.At), a.EndCode(), reason, n)
}

// remedy returns what to do if attempts hang.
func (a *Answer) remedy() string {
	text := "If one backend hangs, find it and stop it: the log names slow backends once a minute, and the debug page\n" +
		"has a table of them (docs/runbook.md#a-backend-fails-hangs-or-is-slow).\n"
	if !a.Safe && a.Policy.MaxAttempts() > 1 {
		text += "No attempt follows a slow one of this method, since nothing declares it idempotent. Declare it, send a key if\n" +
			"its server deduplicates, or have gRPC eject the backend (docs/set-up.md#eject-what-hangs).\n"
	}
	return text
}

// EndCode returns the code that the caller gets.
func (a *Answer) EndCode() string {
	if a.End.Reason == policy.ReasonDeadlineExceeded && a.End.Err == nil { // the context's error
		return codename.Of(codes.DeadlineExceeded)
	}
	return codename.Of(status.Code(a.End.Err))
}

// then returns the consequence of the event.
func (e *Event) then() string {
	switch {
	case e.Decision.Retry && e.Down:
		return "another attempt, once connected"
	case e.Decision.Retry && e.Slow && e.Decision.Reason == policy.ReasonHedge:
		return "a parallel attempt"
	case e.Decision.Retry && e.Slow:
		return "another attempt in its place"
	case e.Decision.Retry:
		return "another attempt"
	case e.Decision.Announced():
		return "another attempt would follow"
	case e.Slow:
		return "it goes on alone"
	default:
		return "no other attempt"
	}
}

// Short returns a time rounded to a tenth of a millisecond.
func Short(d time.Duration) string { return d.Round(time.Millisecond / 10).String() }

func (a *Answer) entryText() string {
	switch {
	case a.Entry == "{}":
		return "{}, which names everything"
	case !strings.HasSuffix(a.Entry, "/"):
		return a.Entry + ", which names the method"
	default:
		return a.Entry + ", which names its service"
	}
}

// mode returns how extra attempts are treated, or "" if all are sent.
func (a *Answer) mode() string {
	switch a.Policy.Mode() {
	case policy.ModeOff:
		return "OFF: extra attempts aren't sent"
	case policy.ModeObserve:
		return "OBSERVE: the first extra attempt is decided, but not sent"
	default:
		return ""
	}
}

func (a *Answer) attempts() string {
	n := a.Policy.MaxAttempts()
	if n == 1 {
		return "1: the entry has no retryPolicy or hedgingPolicy"
	}
	text := strconv.Itoa(n)
	if n > a.MaxAttempts {
		text = fmt.Sprintf("%d, cut to %d (maxAttemptsLimit allows more)", n, a.MaxAttempts)
	}
	switch {
	case compiled.Of(a.Policy).Hedge == nil:
		return text
	case a.Alone:
		return text + ", one after the other: calls whose client sends a stream are not hedged"
	default:
		return text + " in parallel (hedging)"
	}
}

// settings adds an entry's settings for retries or hedges, defaults included. uploads says that the client sends a stream.
func settings(p *policy.Policy, uploads bool, add func(name, format string, args ...any)) {
	of := compiled.Of(p)
	if r := of.Retry; r != nil {
		add("codes", "%s", codename.List(r.RetryableStatusCodes))
		first := map[bool]string{true: "none before the first retry (AT_ONCE; within 1 ms), then "}[r.FirstRetry == "AT_ONCE"]
		add("backoff", "%s", first+backoffText(r.Backoff))
		for _, own := range r.PerCode {
			add("", "%s: with the settings of perCode", codename.List(own.Codes))
		}
	}
	if h := of.Hedge; h != nil {
		switch {
		case uploads:
			add("hedges", "none, since the client sends a stream (docs/streams.md)")
		case h.Quantile > 0:
			add("hedges", "one every %v", h.HedgingDelay)
			add("", "after the latency that %v of the calls stay under, once that is known", h.Quantile)
		default:
			add("hedges", "one every %v", h.HedgingDelay)
		}
		if len(h.NonFatalStatusCodes) > 0 {
			add("codes", "%s: the next attempt is sent immediately; all others end the call", codename.List(h.NonFatalStatusCodes))
		} else {
			add("codes", "none is non-fatal: each failure ends the call")
		}
	}
	if p.Admission() {
		add("admission", "REFUSE: a call that can't be served before its deadline isn't sent")
	}
	if of.Retry == nil && of.Hedge == nil {
		return
	}
	var times []string
	if of.Timeout > 0 {
		times = append(times, fmt.Sprintf("%v for the call", of.Timeout))
	}
	switch t := p.PerAttemptTimeout(); {
	case t > 0 && uploads:
		times = append(times, "none for an attempt, since the client sends a stream (docs/streams.md)")
	case t > 0:
		then := map[string]string{"RETRY": "another one in its place (RETRY)", "HEDGE": "a parallel one (HEDGE)"}[of.Retry.OnAttemptTimeout]
		times = append(times, fmt.Sprintf("%v for an attempt, then %s", t, then))
	}
	if t := p.MessageTimeout(); t > 0 {
		times = append(times, fmt.Sprintf("%v of silence of a server stream, which then counts as cut", t))
	}
	if p.Parallel() && !uploads {
		add("parallel", "if stagger can make a reply for the codec, as it can for protobuf; else in sequence (docs/hedging.md)")
	}
	if t := p.MaxConnectionWait(); t > 0 {
		times = append(times, fmt.Sprintf("%v for a connection or an answer, in the first %v of an outage", t, attempts.MaxOutage))
	}
	if len(times) > 0 {
		add("timeouts", "%s", strings.Join(times, "; "))
	}
	add("pushback", "obeyed up to %v; a longer one ends the call", cmp.Or(of.MaxPushback, defaults.MaxPushback))
}

func backoffText(b backoff.Config) string {
	text := fmt.Sprintf("%v", b.Initial)
	switch {
	case b.Multiplier == 1 && b.Growth != backoff.GrowthLinear:
		text += " each time"
	case b.Growth == backoff.GrowthLinear:
		text += fmt.Sprintf(", and × %v of that more each time, up to %v", b.Multiplier, b.Max)
	default:
		text += fmt.Sprintf(", × %v each time, up to %v", b.Multiplier, b.Max)
	}
	return text + "; jitter " + string(cmp.Or(b.Jitter, backoff.JitterFull))
}
