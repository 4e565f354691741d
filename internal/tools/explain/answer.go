// Copyright 2026 The stagger Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/stagger-go/stagger/internal/attempts"
	"github.com/stagger-go/stagger/internal/codename"
	"github.com/stagger-go/stagger/internal/decision"
	"github.com/stagger-go/stagger/internal/lookup"
	"github.com/stagger-go/stagger/policy"
)

// Fact is one property that all calls of the method share. Without a name it continues the one before.
type Fact struct{ Name, Value string }

// Facts returns the entry's settings and the defaults of those it leaves out; none if there is no policy.
func (a *Answer) Facts() []Fact {
	if a.Policy == nil {
		return nil
	}
	list := []Fact{{"entry", a.entryText()}}
	if mode := a.mode(); mode != "" {
		list = append(list, Fact{"mode", mode})
	}
	list = append(list, Fact{"attempts", a.attempts()}, Fact{"safe", a.safety()})
	if !a.Safe {
		list = append(list, Fact{"refused", a.transparent()})
		if spec := a.Policy.Spec(); spec.Retry != nil || spec.Hedge != nil {
			list = append(list, Fact{"", a.believes()})
		}
	}
	list = append(list, settings(a.Policy)...)
	if a.Budget != "" {
		empty := ""
		if a.BudgetEmpty {
			empty = ", which is empty"
		}
		list = append(list, Fact{"budget", a.Budget + empty})
	}
	if a.Pool != "" {
		list = append(list, Fact{"pool", fmt.Sprintf("%s: %v extra attempts a second for all processes together, in addition to the earnings of each one's calls", a.Pool, a.PoolRate)})
	}
	if a.Down {
		list = append(list, Fact{"down", a.down()})
	}
	if a.Limit > 0 {
		list = append(list, Fact{"deadline", a.Limit.String() + " for the whole call"})
	}
	return list
}

// Refusal returns the last decision if a check refused it, else nil.
func (a *Answer) Refusal() *Event {
	if len(a.Events) == 0 {
		return nil
	}
	last := &a.Events[len(a.Events)-1]
	if !slices.ContainsFunc(decision.Steps(), func(s decision.Step) bool { return s.No == last.Decision.Reason }) {
		return nil
	}
	return last
}

// Scenario returns how every attempt ends.
func (a *Answer) Scenario() string {
	var b strings.Builder
	switch {
	case a.Down:
		b.WriteString("no connection can be made, from the call's start on")
	case a.Hang:
		b.WriteString("no attempt is ever answered")
	case a.Latency > 0:
		fmt.Fprintf(&b, "every attempt fails with %s%s, after %v", codename.Of(a.Code), a.pushback(), a.Latency)
	default:
		fmt.Fprintf(&b, "every attempt fails with %s%s, at once", codename.Of(a.Code), a.pushback())
	}
	b.WriteString(a.text())
	return b.String()
}

// Outcome returns how the call ends.
func (a *Answer) Outcome() string {
	if a.Never {
		return "The call does not end: it has no deadline, and there is no answer."
	}
	n := strconv.Itoa(a.End.Attempts) + " attempts"
	if a.End.Attempts == 1 {
		n = "1 attempt"
	}
	if a.End.Hedges > 0 {
		n += fmt.Sprintf(", %d of them hedges", a.End.Hedges)
	}
	return fmt.Sprintf("The call ends after %s with %s: %s (%s).", Short(a.At), a.EndCode(), a.End.Reason, n)
}

// EndCode returns the code that the caller gets.
func (a *Answer) EndCode() string {
	if code, yes := stopped[a.End.Reason]; yes && a.End.Err == nil { // the context's error
		return codename.Of(code)
	}
	return codename.Of(status.Code(a.End.Err))
}

// Then returns the consequence of the event.
func (e *Event) Then() string {
	switch {
	case e.Decision.Retry && e.Down:
		return "another attempt, once connected"
	case e.Decision.Retry && e.Slow && e.Decision.Reason == policy.ReasonHedge:
		return "a parallel attempt"
	case e.Decision.Retry && e.Slow:
		return "another attempt in its place"
	case e.Decision.Retry:
		return "another attempt"
	case e.Decision.Shadow():
		return "another attempt would follow"
	case e.Slow:
		return "it goes on alone"
	default:
		return "no other attempt"
	}
}

// Between returns the shortest and longest possible wait, or "" if there is no wait.
func (e *Event) Between() string {
	if !e.Waits {
		return ""
	}
	return Short(e.Least) + " and " + Short(e.Longest)
}

// Short returns a time rounded to a tenth of a millisecond.
func Short(d time.Duration) string { return d.Round(time.Millisecond / 10).String() }

func (a *Answer) pushback() string {
	if a.Pushback == "" {
		return ""
	}
	return " and " + decision.PushbackTrailer + ": " + a.Pushback
}

func (a *Answer) entryText() string {
	n := a.Policy.Name()
	switch {
	case a.Entry == "{}":
		return "{}, which names everything"
	case lookup.Package(n) != "":
		return a.Entry + ", which names its package"
	case a.Entry != n:
		return a.Entry // from the API
	case !strings.HasSuffix(n, "/"):
		return a.Entry + ", which names the method"
	default:
		return a.Entry + ", which names its service"
	}
}

// mode returns how extra attempts are treated, or "" if all are sent.
func (a *Answer) mode() string {
	switch p := a.Policy; {
	case p.Mode() == policy.ModeOff:
		return "OFF: extra attempts aren't sent"
	case p.Mode() == policy.ModeObserve:
		return "OBSERVE: the first extra attempt is decided, but not sent" + part(p)
	case p.Percent() < 100:
		return "ENFORCE" + part(p)
	default:
		return ""
	}
}

// part returns the part of the calls for which the mode holds.
func part(p *decision.Policy) string {
	if p.Percent() == 100 {
		return ""
	}
	return fmt.Sprintf(", for %v %% of the calls; the others are OFF", p.Percent())
}

// down returns how long a call waits for a connection, in addition to its own time.
func (a *Answer) down() string {
	wait := a.ConnectionWait()
	switch {
	case wait == 0 && a.waitsInGRPC(a.Attempts, a.Limit) && a.Limit > 0:
		return fmt.Sprintf("calls wait in gRPC, until their deadline after %v", a.Limit)
	case wait == 0 && a.waitsInGRPC(a.Attempts, a.Limit):
		return "calls wait in gRPC, for ever: they have no deadline"
	case wait == 0:
		return "calls do not wait for a connection"
	}
	of := ", and have no deadline"
	if a.Limit > 0 {
		of = fmt.Sprintf(" of the %v that they have", a.Limit)
	}
	return fmt.Sprintf("calls wait for a connection for up to %v%s; not at all when the outage is older than %v",
		wait, of, attempts.MaxOutage(a.Policy.MaxConnectionWait()))
}

func (a *Answer) attempts() string {
	n := a.Policy.MaxAttempts()
	switch {
	case n == 1:
		return "1: the entry has no retryPolicy or hedgingPolicy"
	case n > a.MaxAttempts:
		return fmt.Sprintf("%d, cut to %d; maxAttemptsLimit allows more", n, a.MaxAttempts)
	case a.Policy.Hedge() != nil && a.Alone:
		return fmt.Sprintf("%d, one after the other: calls whose client sends a stream are not hedged", n)
	case a.Policy.Hedge() != nil:
		return fmt.Sprintf("%d in parallel (hedging)", n)
	default:
		return strconv.Itoa(n)
	}
}

// transparent returns what gRPC does by itself if a server refuses the stream of a non-idempotent call.
func (a *Answer) transparent() string {
	if a.Denied {
		return "gRPC does not retry the call if the server refuses its stream (transparentRetry: DENY)"
	}
	return "gRPC itself retries the call once if the server refuses its stream (transparentRetry: ALLOW)"
}

// believes returns what happens to a non-idempotent call if a server reports that it did not process it.
func (a *Answer) believes() string {
	if a.Ignores {
		return "a server that says it did not process the call is not believed (refusedRetry: DENY)"
	}
	return "a server that says it did not process the call is believed (refusedRetry: ALLOW)"
}

func (a *Answer) safety() string {
	if a.Safe {
		return "yes: " + a.Because
	}
	return "no: " + a.Because
}
